"""The wire without a socket: printing and parsing of messages, and the errors."""

from __future__ import annotations

import json
import pickle
from typing import Any, Dict, List

import pytest

import vscode_bridge
from vscode_bridge import _exceptions, _protocol
from vscode_bridge._protocol import Answer, Conversation, Progress, StreamedText

from bridge import ROOT


def test_a_request_is_json_rpc_with_a_fresh_id() -> None:
    first = _protocol.new_request("vscode/chat", {"message": "hi"})
    second = _protocol.new_request("vscode/chat", {})
    assert json.loads(first.text) == {
        "jsonrpc": "2.0",
        "id": first.id,
        "method": "vscode/chat",
        "params": {"message": "hi"},
    }
    assert first.id != second.id


def test_lone_surrogates_keep_their_escapes() -> None:
    text = _protocol.new_request("m", {"message": "a\ud800b \U0001f600"}).text
    assert "a\\ud800b \\ud83d\\ude00" in text
    text.encode("ascii")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_without_a_json_form_are_refused(value: float) -> None:
    with pytest.raises(vscode_bridge.RequestRefused, match="NaN and Infinity") as caught:
        _protocol.new_request("vscode/executeCommand", {"args": [{"deep": value}]})
    assert caught.value.kind == "InvalidParams"


def test_values_without_a_json_form_are_refused() -> None:
    endless: Dict[str, Any] = {}
    endless["self"] = endless
    for value in (object(), b"bytes", {1, 2}, endless):
        with pytest.raises(vscode_bridge.RequestRefused, match="cannot be written as JSON"):
            _protocol.new_request("m", {"value": value})


def test_a_request_beyond_the_limit_is_refused() -> None:
    with pytest.raises(vscode_bridge.RequestRefused, match="16777216 are allowed") as caught:
        _protocol.new_request("m", {"value": "x" * _protocol.MESSAGE_BYTES})
    assert caught.value.kind == "OversizedRequest"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"jsonrpc":"2.0","id":7,"result":{"a":1}}', Answer(7, {"a": 1})),
        ('{"jsonrpc":"2.0","id":7,"result":null}', Answer(7, None)),
        (
            '{"method":"$/progress","params":{"id":7,"value":{"text":"x"}}}',
            Progress(7, {"text": "x"}),
        ),
        ('{"method":"$/progress","params":{"id":"7"}}', None),
        ('{"method":"$/progress"}', None),
        ('{"method":"bridge/request","params":{}}', None),
        ('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad"}}', None),
        ('{"id":7}', None),
        ("[]", None),
        ("no JSON", None),
        ("[" * 100_000, None),
    ],
)
def test_reading_messages(text: str, message: object) -> None:
    assert _protocol.read(text) == message


def test_a_cancel_names_the_request() -> None:
    assert json.loads(_protocol.cancel_text(12)) == {
        "jsonrpc": "2.0",
        "method": "$/cancelRequest",
        "params": {"id": 12},
    }


@pytest.mark.parametrize(
    ("code", "exception"),
    [
        (-32700, vscode_bridge.RequestRefused),
        (-32600, vscode_bridge.RequestRefused),
        (-32601, vscode_bridge.RequestRefused),
        (-32602, vscode_bridge.RequestRefused),
        (-32603, vscode_bridge.RequestFailed),
        (-32005, vscode_bridge.RequestRefused),
        (-32007, vscode_bridge.RequestRefused),
        (-32008, vscode_bridge.RequestFailed),
        (-32009, vscode_bridge.BridgeBusy),
        (-32050, vscode_bridge.HostUnavailable),
        (-32051, vscode_bridge.HostGone),
        (-32052, vscode_bridge.BridgeTimeout),
        (-32053, vscode_bridge.RequestFailed),
        (-32054, vscode_bridge.RequestRefused),
        (-32055, vscode_bridge.RequestRefused),
        (-32056, vscode_bridge.BridgeUnavailable),
        (-32057, vscode_bridge.BridgeUnavailable),
        (-32059, vscode_bridge.RequestRefused),
        (-32061, vscode_bridge.RequestRefused),
        (-32800, vscode_bridge.BridgeCancelled),
        (17, vscode_bridge.RequestFailed),
    ],
)
def test_each_code_has_its_exception(code: int, exception: type) -> None:
    text = json.dumps({"id": 1, "error": {"code": code, "message": "why", "data": {"kind": "K"}}})
    answer = _protocol.read(text)
    assert isinstance(answer, Answer)
    assert type(answer.error) is exception
    assert isinstance(answer.error, RuntimeError)
    assert answer.error.code == code
    assert answer.error.kind == "K"
    assert str(answer.error) == "VSCode request failed: why"


def test_every_code_of_the_protocol_page_is_known() -> None:
    page = (ROOT / "PROTOCOL.md").read_text(encoding="utf-8")
    table = page[page.index("## 9. Errors") : page.index("## 10.")]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| -32")]
    documented = {int(row[1]): row[2].strip() for row in rows}
    assert documented == {code: kind for code, (kind, _) in _exceptions._BY_CODE.items()}


def test_strange_error_objects_are_still_errors() -> None:
    strange: List[object] = ["text", None, 5, {}, {"code": "x", "message": None, "data": []}]
    for error in strange:
        exception = _exceptions.request_failed(error)
        assert isinstance(exception, vscode_bridge.RequestFailed)
        assert exception.code is None
        assert "VSCode request failed: " in str(exception)


def test_retryable_is_what_the_bridge_says() -> None:
    error = {"code": -32050, "message": "no host", "data": {"retryable": True}}
    assert _exceptions.request_failed(error).retryable
    assert not vscode_bridge.BridgeTimeout("late").retryable


def test_exceptions_survive_pickling() -> None:
    error = vscode_bridge.HostGone("gone", code=-32051, kind="HostGone", data={"x": 1})
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.code, copy.data) == (type(error), "gone", -32051, {"x": 1})


@pytest.mark.parametrize(
    ("seconds", "milliseconds"), [(30, 30000), (30.0, 30000), (0.7005, 700.5), (0, 0)]
)
def test_seconds_become_milliseconds(seconds: float, milliseconds: float) -> None:
    assert _protocol.milliseconds(seconds) == milliseconds
    assert json.dumps(_protocol.milliseconds(30.0)) == "30000"


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), "30", None])
def test_a_timeout_is_a_number_of_seconds(timeout: Any) -> None:
    with pytest.raises(vscode_bridge.RequestRefused, match="not a number of seconds"):
        _protocol.milliseconds(timeout)


def test_chat_params_hold_what_was_given() -> None:
    assert _protocol.chat_params("hi", None, None, None) == {"message": "hi"}
    assert _protocol.chat_params("hi", 2, "gpt", Conversation("c7")) == {
        "message": "hi",
        "model": "gpt",
        "conversationId": "c7",
        "timeout": 2000,
    }


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"response": "4"}, "4"),
        ({}, ""),
        (None, ""),
        (
            {"blocked": True, "blockedReason": "refusal", "response": ""},
            "[Copilot blocked: refusal]",
        ),
        ({"blocked": True}, "[Copilot blocked: blocked]"),
        (
            {"blocked": True, "blockedReason": "off_topic", "openedChat": True},
            "[Copilot blocked: off_topic and opened Copilot Chat]",
        ),
    ],
)
def test_chat_text(result: object, text: str) -> None:
    assert _protocol.chat_text(result) == text


def test_a_conversation_learns_its_id() -> None:
    talk = Conversation()
    _protocol.chat_text({"response": "x", "conversationId": "c1"}, talk)
    assert talk.id == "c1"
    assert repr(talk) == "Conversation(id='c1')"


@pytest.mark.parametrize(
    ("pieces", "result", "rest"),
    [
        ([], {"response": "whole"}, "whole"),
        (["wh", "ole"], {"response": "whole"}, ""),
        (["wh"], {"response": "whole"}, "ole"),
        (["other"], {"response": "whole"}, ""),
        (["wh"], {"blocked": True, "blockedReason": "refusal"}, "[Copilot blocked: refusal]"),
    ],
)
def test_streamed_text_and_the_rest(pieces: "list[str]", result: object, rest: str) -> None:
    text = StreamedText()
    assert [text.piece({"text": piece}) for piece in pieces] == pieces
    assert text.piece("no text") == ""
    assert text.rest(result) == rest
