"""The opening handshake and the answers to pings, as a test server sees them."""

from __future__ import annotations

import json
import socket
import sys
import threading
from typing import Any, Callable, Iterator, List

import pytest
from websockets.sync.server import ServerConnection, serve

from vscode_bridge import BridgeUnavailable, Client, Endpoint

from bridge import LIMIT, clean_environment, run

Handler = Callable[[ServerConnection], None]


@pytest.fixture
def start_server() -> Iterator[Callable[[Handler], Endpoint]]:
    """Starts a WebSocket server and returns its endpoint."""
    servers: List[Any] = []

    def start(handler: Handler) -> Endpoint:
        server = serve(handler, "127.0.0.1", 0)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return Endpoint(f"ws://127.0.0.1:{server.socket.getsockname()[1]}/", "t0k3n", "s3ss10n")

    yield start
    for server in servers:
        server.shutdown()


def answer(connection: ServerConnection) -> None:
    """Answers one request with an empty result."""
    request = json.loads(connection.recv(timeout=LIMIT))
    connection.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {}}))


def test_the_token_is_in_a_header_and_nowhere_else(
    start_server: Callable[[Handler], Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = []

    def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        requests.append(connection.request)
        answer(connection)

    # A proxy that does not exist: it must not be used for a local address.
    for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    with Client(start_server(handler)) as client:
        client.request("bridge/ping")
    [request] = requests
    assert request.path == "/"
    assert request.headers["Authorization"] == "Bearer t0k3n"
    assert request.headers["X-Run-Bridge-Session"] == "s3ss10n"
    assert "Origin" not in request.headers
    assert "Sec-WebSocket-Extensions" not in request.headers
    assert [name for name, value in request.headers.raw_items() if "t0k3n" in value] == [
        "Authorization"
    ]


def test_pings_are_answered_while_idle_and_while_waiting(
    start_server: Callable[[Handler], Endpoint],
) -> None:
    pongs: List[bool] = []

    def handler(connection: ServerConnection) -> None:
        request = json.loads(connection.recv(timeout=LIMIT))
        pongs.append(connection.ping().wait(LIMIT))
        connection.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {}}))
        pongs.append(connection.ping().wait(LIMIT))
        answer(connection)

    with Client(start_server(handler)) as client:
        client.request("bridge/ping")
        client.request("bridge/ping")
    assert pongs == [True, True]


def test_the_end_of_the_interpreter_is_a_proper_goodbye(
    start_server: Callable[[Handler], Endpoint],
) -> None:
    codes: List[Any] = []
    ended = threading.Event()

    def handler(connection: ServerConnection) -> None:
        answer(connection)
        for _message in connection:
            pass
        codes.append(connection.close_code)
        ended.set()

    endpoint = start_server(handler)
    names = ("RUN_BRIDGE_ADDR", "RUN_BRIDGE_TOKEN", "RUN_BRIDGE_SESSION")
    env = clean_environment(**dict(zip(names, endpoint)))
    done = run([sys.executable, "-c", "import vscode_bridge as v; v.show_message('x')"], env)
    assert (done.returncode, done.stderr) == (0, "")
    assert ended.wait(LIMIT)
    assert codes == [1000]


def test_messages_that_are_none_are_passed_over(
    start_server: Callable[[Handler], Endpoint],
) -> None:
    def handler(connection: ServerConnection) -> None:
        for noise in ("no JSON", "[]", '{"id": 999999, "result": 1}', '{"method": "other"}'):
            connection.send(noise)
        answer(connection)

    with Client(start_server(handler)) as client:
        assert client.request("bridge/ping") == {}


def test_a_server_that_speaks_no_websocket_is_explained() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            connection, _ = listener.accept()
            connection.close()

        threading.Thread(target=hang_up, daemon=True).start()
        endpoint = Endpoint(f"ws://127.0.0.1:{listener.getsockname()[1]}/", "t", "s")
        with Client(endpoint) as client, pytest.raises(BridgeUnavailable, match="not a bridge"):
            client.request("bridge/ping")
