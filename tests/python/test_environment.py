"""Finding the bridge by the environment."""

from __future__ import annotations

from typing import Dict

import pytest

import vscode_bridge
from vscode_bridge import BridgeUnavailable, Endpoint, _endpoint

SHORT = {
    "RUN_BRIDGE_ADDR": "ws://127.0.0.1:1/",
    "RUN_BRIDGE_TOKEN": "t1",
    "RUN_BRIDGE_SESSION": "s1",
}
LONG = {
    "EVOLVE_RUN_BRIDGE_ADDR": "ws://127.0.0.1:2/",
    "EVOLVE_RUN_BRIDGE_TOKEN": "t2",
    "EVOLVE_RUN_BRIDGE_SESSION": "s2",
}


@pytest.mark.parametrize(
    ("environ", "session"),
    [
        ({}, None),
        (SHORT, "s1"),
        (LONG, "s2"),
        ({**SHORT, **LONG}, "s1"),
        ({**SHORT, **LONG, "RUN_BRIDGE_TOKEN": ""}, "s2"),
        ({**SHORT, "RUN_BRIDGE_SESSION": "", "EVOLVE_RUN_BRIDGE_SESSION": "s2"}, None),
    ],
)
def test_families_are_complete_and_never_mixed(environ: Dict[str, str], session: str) -> None:
    endpoint = _endpoint.find(environ)
    assert (endpoint and endpoint.session) == session


def test_an_endpoint_does_not_show_its_token() -> None:
    endpoint = Endpoint("ws://127.0.0.1:1/", "secret", "s")
    assert "secret" not in repr(endpoint)
    assert "secret" not in f"{endpoint}"


@pytest.mark.parametrize(
    ("addr", "expected"),
    [
        ("ws://127.0.0.1:4711/", ("127.0.0.1", 4711)),
        ("ws://[::1]:4711/", ("::1", 4711)),
        ("ws://localhost/", ("localhost", 80)),
    ],
)
def test_host_and_port(addr: str, expected: object) -> None:
    assert Endpoint(addr, "t", "s").host_and_port() == expected


@pytest.mark.parametrize(
    "addr", ["127.0.0.1:4711", "wss://x/", "ws://", "ws://x:port/", "http://x/"]
)
def test_a_malformed_address_is_explained(addr: str) -> None:
    with pytest.raises(BridgeUnavailable, match="Check RUN_BRIDGE_ADDR"):
        Endpoint(addr, "t", "s").host_and_port()


def test_a_malformed_address_fails_the_request(
    monkeypatch: pytest.MonkeyPatch, no_bridge: None
) -> None:
    for name, value in {**SHORT, "RUN_BRIDGE_ADDR": "nonsense"}.items():
        monkeypatch.setenv(name, value)
    assert vscode_bridge.is_available()
    with vscode_bridge.Client() as client, pytest.raises(BridgeUnavailable, match="nonsense"):
        client.chat("hi")


def test_without_a_bridge_every_function_says_how_to_get_one(no_bridge: None) -> None:
    assert vscode_bridge.is_available() is False
    for call in (
        lambda: vscode_bridge.chat("hi"),
        lambda: vscode_bridge.chat("hi", stream=True),
        lambda: vscode_bridge.chat_async("hi"),
        lambda: vscode_bridge.show_message("hi"),
        lambda: vscode_bridge.execute_command("x"),
        lambda: vscode_bridge.get_chat_history("c1"),
        lambda: vscode_bridge.Client().chat("hi"),
    ):
        with pytest.raises(RuntimeError, match="not initialized") as caught:
            call()
        assert isinstance(caught.value, BridgeUnavailable)
        assert "bridge-daemon run -- python3" in str(caught.value)
        assert "VS Code" in str(caught.value)


def test_is_available_looks_at_the_environment_each_time(
    monkeypatch: pytest.MonkeyPatch, no_bridge: None
) -> None:
    assert not vscode_bridge.is_available()
    for name, value in LONG.items():
        monkeypatch.setenv(name, value)
    assert vscode_bridge.is_available()
