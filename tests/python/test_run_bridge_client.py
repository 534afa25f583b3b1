"""The six functions against the real daemon and a scripted host."""

from __future__ import annotations

import math
import os
import signal
import time
from typing import Any, Callable, Dict

import pytest

import vscode_bridge
from vscode_bridge import (
    BridgeError,
    BridgeTimeout,
    BridgeUnavailable,
    Client,
    Conversation,
    Endpoint,
    HostGone,
    HostUnavailable,
    RequestFailed,
    RequestRefused,
    _connection,
)

from bridge import Daemon, chat_rule, slow_rule

SHOWN: Dict[str, Any] = {"method": "vscode/showMessage", "result": {}}


def test_module_functions(inside: Daemon) -> None:
    history = [{"role": "user", "content": "hi", "timestamp": 1}]
    host = inside.host(
        chat_rule(),
        SHOWN,
        {"method": "vscode/executeCommand", "result": {"result": 42}},
        {"method": "vscode/getChatHistory", "result": {"messages": history}},
    )
    assert vscode_bridge.is_available()
    assert vscode_bridge.chat("What is 2+2?") == "You said: What is 2+2?"
    assert vscode_bridge.show_message("Look", "warning") is None
    assert vscode_bridge.execute_command("editor.act", 1, "two", timeout=5) == 42
    assert vscode_bridge.get_chat_history("c1", 5) == history
    assert vscode_bridge.chat_async("later").wait() == "You said: later"
    assert "".join(vscode_bridge.chat("flow", stream=True)) == "You said: flow"

    assert host.request("vscode/chat") == {"message": "What is 2+2?", "timeout": 30000}
    assert host.request("vscode/showMessage") == {"message": "Look", "level": "warning"}
    assert host.request("vscode/executeCommand") == {
        "command": "editor.act",
        "args": [1, "two"],
        "timeout": 5000,
    }
    assert host.request("vscode/getChatHistory") == {"conversationId": "c1", "limit": 5}


def test_optional_parameters_reach_the_host(daemon: Daemon, client: Client) -> None:
    host = daemon.host(chat_rule(), SHOWN)
    client.chat("hi", 0.7005, model="gpt", conversation="c9")
    client.show_message("Go?", "error", buttons=["Yes", "No"], timeout=2)
    assert host.request("vscode/chat") == {
        "message": "hi",
        "timeout": 700.5,
        "model": "gpt",
        "conversationId": "c9",
    }
    assert host.request("vscode/showMessage") == {
        "message": "Go?",
        "level": "error",
        "buttons": ["Yes", "No"],
        "timeout": 2000,
    }


def test_buttons_return_the_choice(daemon: Daemon, client: Client) -> None:
    daemon.host({"method": "vscode/showMessage", "result": {"choice": "Yes"}})
    assert client.show_message("Go?", buttons=["Yes", "No"]) == "Yes"


def test_a_command_that_returns_nothing_gives_none(daemon: Daemon, client: Client) -> None:
    daemon.host({"method": "vscode/executeCommand", "result": {}})
    assert client.execute_command("editor.act") is None


def test_a_conversation_is_a_key_for_history(daemon: Daemon, client: Client) -> None:
    host = daemon.host(chat_rule(), {"method": "vscode/getChatHistory", "result": {"messages": []}})
    talk = Conversation()
    assert client.get_chat_history(talk) == []  # no messages yet, so no request is sent
    client.chat("one", conversation=talk)
    client.chat("two", conversation=talk)
    client.get_chat_history(talk)
    assert "conversationId" not in host.request("vscode/chat")
    assert host.request("vscode/chat")["conversationId"] == "c1"
    assert host.request("vscode/getChatHistory") == {"conversationId": "c1", "limit": 10}


@pytest.mark.parametrize(
    ("opened", "sentence"),
    [
        (False, "[Copilot blocked: refusal]"),
        (True, "[Copilot blocked: refusal and opened Copilot Chat]"),
    ],
)
def test_blocked_is_a_sentence_and_no_exception(
    daemon: Daemon, client: Client, opened: bool, sentence: str
) -> None:
    result = {"response": "", "blocked": True, "blockedReason": "refusal", "openedChat": opened}
    daemon.host({"method": "vscode/chat", "result": result})
    assert client.chat("Do something bad") == sentence
    assert list(client.chat("Do something bad", stream=True)) == [sentence]
    assert client.chat_async("Do something bad").wait() == sentence


def test_timeout_gives_the_reason_and_cancels_at_the_host(daemon: Daemon, client: Client) -> None:
    host = daemon.host(slow_rule())
    with pytest.raises(BridgeTimeout) as caught:
        client.chat("Anybody?", timeout=0.4)
    assert caught.value.code == -32052  # the daemon's answer came before our own timeout
    assert "vscode/chat" in str(caught.value)
    assert caught.value.data["mayHaveExecuted"] is True
    request = host.event("request", method="vscode/chat")
    host.event("cancel", id=request["id"])


def test_our_own_limit_ends_a_call_when_the_daemon_is_stopped(
    daemon: Daemon, client: Client
) -> None:
    daemon.host(chat_rule())
    client.chat("connected")
    os.kill(daemon.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(BridgeTimeout, match=r"Request timeout after 0\.2s") as caught:
            client.chat("Anybody?", timeout=0.2)
        assert caught.value.code is None
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)
    assert client.chat("again") == "You said: again"


def test_waiting_costs_no_cpu(daemon: Daemon, client: Client) -> None:
    daemon.host(slow_rule())
    client.request("bridge/ping")
    before = time.process_time()
    with pytest.raises(BridgeTimeout):
        client.chat("Anybody?", timeout=1)
    assert time.process_time() - before < 0.2


@pytest.mark.parametrize(
    ("error", "exception", "kind"),
    [
        ({"code": -32054, "message": "no"}, RequestRefused, "NotAllowed"),
        (
            {"code": -32055, "message": "no", "data": {"reason": "x"}},
            RequestRefused,
            "BlockedByUser",
        ),
        ({"code": -32000, "message": "command failed"}, RequestFailed, "CommandFailed"),
    ],
)
def test_errors_of_the_host(
    daemon: Daemon, client: Client, error: Dict[str, Any], exception: type, kind: str
) -> None:
    daemon.host({"method": "vscode/executeCommand", "error": error})
    with pytest.raises(BridgeError, match=f"VSCode request failed: {error['message']}") as caught:
        client.execute_command("rm.everything")
    assert type(caught.value) is exception
    assert caught.value.code == error["code"]
    assert caught.value.kind == kind


def test_a_method_that_nobody_offers(daemon: Daemon, client: Client) -> None:
    daemon.host(chat_rule())
    with pytest.raises(RequestRefused) as caught:
        client.request("vscode/noSuchThing")
    assert caught.value.code == -32601


def test_no_host(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon("--host-wait", "0.2")
    with Client(daemon.endpoint) as client, pytest.raises(HostUnavailable) as caught:
        client.chat("Anybody?")
    assert caught.value.code == -32050
    assert caught.value.retryable


def test_a_host_that_comes_later_answers(daemon: Daemon, client: Client) -> None:
    pending = client.chat_async("Early bird")
    deadline = time.monotonic() + 10
    while client.request("bridge/status")["inFlight"] < 1:  # each turn waits for an answer
        assert time.monotonic() < deadline, "the chat never reached the daemon"
    assert not pending.done()
    daemon.host(chat_rule())
    assert pending.wait(20) == "You said: Early bird"


def test_a_host_that_leaves_in_the_middle(daemon: Daemon, client: Client) -> None:
    daemon.host({"method": "vscode/chat", "exit": True})
    with pytest.raises(HostGone) as caught:
        client.chat("Still there?")
    assert caught.value.data["mayHaveExecuted"] is True


def test_wrong_token(daemon: Daemon) -> None:
    wrong = Endpoint(daemon.endpoint.addr, "f" * 64, daemon.session)
    with (
        Client(wrong) as client,
        pytest.raises(BridgeUnavailable, match="refused the token") as caught,
    ):
        client.chat("hi")
    assert "HTTP 401" in str(caught.value)
    assert "f" * 64 not in str(caught.value)


def test_wrong_session(daemon: Daemon) -> None:
    wrong = Endpoint(daemon.endpoint.addr, daemon.token, "another")
    with Client(wrong) as client, pytest.raises(BridgeUnavailable, match="another run"):
        client.chat("hi")


def test_nothing_listens_is_an_error_at_once(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    # If the first connection got more than one attempt, the call would end with BridgeTimeout.
    monkeypatch.setattr(_connection, "RECONNECT_WAIT", math.inf)
    daemon.process.kill()
    with Client(daemon.endpoint) as client, pytest.raises(BridgeUnavailable, match="reached"):
        client.chat("hi", timeout=10)


def test_unix_address(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon("--unix")
    path = next(daemon.runtime.glob("run-bridge/*.sock"))
    daemon.host(chat_rule())
    with Client(Endpoint(f"unix:{path}", daemon.token, daemon.session)) as client:
        assert client.chat("hi") == "You said: hi"


@pytest.mark.parametrize(
    "text",
    ["", "naïve", "数学", "🤖🏽", "lone \ud800 and \udfff", '\x00\u2028\n\t"\\', "a" * 100_000],
)
def test_text_comes_back_as_it_went(daemon: Daemon, client: Client, text: str) -> None:
    daemon.host(chat_rule("${message}"))
    assert client.chat(text) == text


def test_five_megabytes_both_ways(daemon: Daemon, client: Client) -> None:
    daemon.host(chat_rule("${message}"))
    text = "0123456789" * 500_000
    assert client.chat(text) == text


def test_nan_is_refused_before_it_is_sent(daemon: Daemon, client: Client) -> None:
    host = daemon.host({"method": "vscode/executeCommand", "result": {}})
    with pytest.raises(RequestRefused, match="NaN"):
        client.execute_command("x", float("nan"))
    client.execute_command("after")
    assert host.request("vscode/executeCommand")["command"] == "after"


def test_the_token_is_in_no_log(
    daemon: Daemon, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    daemon.host(chat_rule())
    with caplog.at_level("DEBUG"):
        client.chat("hi")
        client.close()
    assert daemon.token not in caplog.text
    assert daemon.token not in daemon.process.stderr()


def test_a_closed_client_can_be_used_again(daemon: Daemon, client: Client) -> None:
    daemon.host(chat_rule())
    for text in ("one", "two"):
        assert client.chat(text) == f"You said: {text}"
        client.close()
    client.close()


def test_pings_of_the_daemon_are_answered(start_daemon: Callable[..., Daemon]) -> None:
    # Two missed pings would end the connection, and with it the call in flight.
    daemon = start_daemon("--ping-interval", "0.5")
    daemon.host(slow_rule())
    with Client(daemon.endpoint) as client:
        with pytest.raises(BridgeTimeout) as caught:
            client.chat("Anybody?", timeout=3)
        assert caught.value.code == -32052
        assert client.request("bridge/status")["clients"] == 1
