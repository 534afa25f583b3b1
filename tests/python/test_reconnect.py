"""The connection is lost, and comes back."""

from __future__ import annotations

from typing import Callable, Iterator

import pytest
from websockets.asyncio.client import ClientConnection

import vscode_bridge
from vscode_bridge import BridgeUnavailable, Client, ConnectionLost, Endpoint, _connection

from bridge import Daemon, chat_rule, slow_rule
from relay import Relay


class Cuttable:
    """A daemon behind a relay, and a client that goes through it."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        target = next(daemon.runtime.glob("run-bridge/*.sock"))
        self.relay = Relay(daemon.directory / "relay", target)
        self.endpoint = Endpoint(f"unix:{self.relay.path}", daemon.token, daemon.session)
        self.client = Client(self.endpoint)


@pytest.fixture
def cuttable(start_daemon: Callable[..., Daemon]) -> Iterator[Cuttable]:
    parts = Cuttable(start_daemon("--unix"))
    yield parts
    parts.client.close()
    parts.relay.end()


def test_a_dropped_connection_is_opened_again(cuttable: Cuttable) -> None:
    cuttable.daemon.host(chat_rule())
    for number in range(3):
        assert cuttable.client.chat(str(number)) == f"You said: {number}"
        cuttable.relay.cut()
    assert cuttable.relay.accepted == 3


def test_a_call_under_way_is_lost_and_not_repeated(cuttable: Cuttable) -> None:
    host = cuttable.daemon.host(slow_rule("vscode/executeCommand"), chat_rule())
    pending = cuttable.client.chat_async("warm up")
    pending.wait()
    held = vscode_bridge.AsyncResult.of(lambda: str(cuttable.client.execute_command("launch")))
    host.event("request", method="vscode/executeCommand")
    cuttable.relay.cut()
    with pytest.raises(ConnectionLost, match="may have been carried out") as caught:
        held.wait(5)
    assert caught.value.data["mayHaveExecuted"] is True
    assert cuttable.client.chat("after") == "You said: after"
    # The host got the command once, and then its cancel.
    host.event("cancel")
    host.event("request", method="vscode/chat")
    commands = [e for e in host.events_so_far() if e.get("method") == "vscode/executeCommand"]
    assert len(commands) == 1


def test_waiting_for_a_lost_bridge_is_bounded(
    cuttable: Cuttable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_connection, "RECONNECT_WAIT", 0.5)
    cuttable.daemon.host(chat_rule())
    cuttable.client.chat("here")
    cuttable.relay.vanish()
    attempts = []
    connect_once = _connection.Connection._connect_once

    async def counted(connection: _connection.Connection, endpoint: Endpoint) -> ClientConnection:
        attempts.append(endpoint)
        return await connect_once(connection, endpoint)

    monkeypatch.setattr(_connection.Connection, "_connect_once", counted)
    # Without the bound, the call would end with BridgeTimeout.
    with pytest.raises(BridgeUnavailable, match="cannot be reached"):
        cuttable.client.chat("gone")
    # At 0, 0.05, 0.15 and 0.35 s: the pauses grow, and the next attempt would be too late.
    assert len(attempts) <= 4


def test_a_call_waits_no_longer_than_its_timeout(cuttable: Cuttable) -> None:
    cuttable.daemon.host(chat_rule())
    cuttable.client.chat("here")
    cuttable.relay.vanish()
    with pytest.raises(vscode_bridge.BridgeTimeout, match="could not be sent") as caught:
        cuttable.client.chat("gone", timeout=0.2)
    assert caught.value.data["mayHaveExecuted"] is False
    assert "cannot be reached" in str(caught.value)


def test_a_bridge_that_comes_back_is_found(cuttable: Cuttable) -> None:
    cuttable.daemon.host(chat_rule())
    cuttable.client.chat("here")
    cuttable.relay.vanish()
    pending = cuttable.client.chat_async("there?")
    # The client may or may not have begun to reconnect; in both cases it finds the new socket.
    cuttable.relay = Relay(
        cuttable.relay.path, next(cuttable.daemon.runtime.glob("run-bridge/*.sock"))
    )
    assert pending.wait(10) == "You said: there?"


def test_daemon_killed_in_mid_call_and_another_started(
    inside: Daemon, start_daemon: Callable[..., Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = inside.host(slow_rule())
    pending = vscode_bridge.chat_async("Anybody?")
    host.event("request")
    inside.process.kill()
    with pytest.raises(ConnectionLost):
        pending.wait(5)
    another = start_daemon()
    another.host(chat_rule())
    for name, value in another.env.items():
        monkeypatch.setenv(name, value)
    assert vscode_bridge.chat("hello again") == "You said: hello again"


def test_a_daemon_that_ends_in_order_answers_first(daemon: Daemon, client: Client) -> None:
    host = daemon.host(slow_rule())
    pending = client.chat_async("Anybody?")
    host.event("request")
    daemon.process.popen.terminate()
    with pytest.raises((BridgeUnavailable, ConnectionLost)) as caught:
        pending.wait(10)
    assert caught.value.kind in ("ShuttingDown", "ConnectionLost")
