"""The golden messages that the Rust, Python and TypeScript suites all read."""

from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest

from vscode_bridge import _exceptions, _protocol, _types
from vscode_bridge._protocol import Answer, Progress
from vscode_bridge._types import action, bridge, shell

from bridge import ROOT
from mirror import misfit

FOLDER = ROOT / "tests" / "wire"


def golden(name: str) -> List[Dict[str, Any]]:
    cases: List[Dict[str, Any]] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return cases


def test_every_file_is_read_here() -> None:
    assert {path.name for path in FOLDER.glob("*.json")} == {
        "answers.json",
        "errors.json",
        "methods.json",
        "notifications.json",
        "requests.json",
    }


@pytest.mark.parametrize("case", golden("answers.json"), ids=lambda case: case["name"])
def test_answers_mean_what_they_should(case: Dict[str, Any]) -> None:
    message = _protocol.read(case["text"])
    if case["id"] is None:
        assert message is None  # it answers none of our requests
    elif "progress" in case:
        assert message == Progress(case["id"], case["progress"])
    elif "result" in case:
        assert message == Answer(case["id"], case["result"])
    else:
        assert isinstance(message, Answer)
        assert message.id == case["id"]
        assert message.error is not None
        assert message.error.code == case["error"]["code"]
        assert message.error.kind == (case["error"]["kind"] or "RequestFailed")


def test_the_table_of_errors_is_the_same_everywhere() -> None:
    documented = {case["code"]: case["kind"] for case in golden("errors.json")}
    assert documented == {code: kind for code, (kind, _) in _exceptions._BY_CODE.items()}
    for case in golden("errors.json"):
        error = {"code": case["code"], "message": "x", "data": {"retryable": case["retryable"]}}
        assert _exceptions.request_failed(error).retryable is case["retryable"]


@pytest.mark.parametrize("case", golden("methods.json"), ids=lambda case: case["method"])
def test_every_example_fits_the_types(case: Dict[str, Any]) -> None:
    if case["method"] not in _types.METHODS:
        pytest.fail(f"{case['method']} is not in METHODS of _types/__init__.py: add its types")
    params, result = _types.METHODS[case["method"]]
    assert misfit(case["params"], params, "params") == ""
    assert misfit(case["result"], result, "result") == ""
    for value in case.get("progress", ()):
        assert misfit(value, _types.PROGRESS[case["method"]], "progress") == ""


def test_every_method_has_types_and_an_example() -> None:
    examples = golden("methods.json")
    unequal = {case["method"] for case in examples} ^ set(_types.METHODS)
    assert not unequal, "add these to METHODS in _types/__init__.py, or to tests/wire/methods.json"
    assert {case["method"] for case in examples if "progress" in case} == set(_types.PROGRESS)


def test_every_notification_fits_its_type() -> None:
    examples = golden("notifications.json")
    assert {case["method"] for case in examples} == set(_types.NOTIFICATIONS)
    for case in examples:
        assert misfit(case["params"], _types.NOTIFICATIONS[case["method"]], case["method"]) == ""


@pytest.mark.parametrize(
    ("value", "kind", "problem"),
    [
        ({}, shell.KeysParams, "lacks ['keys']"),
        ({"keys": [], "key": 1}, shell.KeysParams, "does not know ['key']"),
        ({"keys": [1]}, shell.KeysParams, "value.keys[0]: 1 is no str"),
        ({"keys": "C-c"}, shell.KeysParams, "is no list"),
        ({"signal": "NONE"}, shell.SignalParams, "is none of"),
        ({"columns": True, "rows": 1}, shell.ResizeParams, "True is no int"),
        ({"environment": {"A": 1}}, shell.CreateShellParams, "value.environment.A: 1 is no str"),
        ({"role": "guest", "rights": []}, bridge.CreateTokenParams, "is none of"),
        ({"path": "a", "diff": ""}, action.Extras, "does not know"),
        ([], shell.ShellRef, "is no object"),
    ],
)
def test_what_does_not_fit_is_found(value: object, kind: object, problem: str) -> None:
    assert problem in misfit(value, kind)


def ours(case: Dict[str, Any]) -> bool:
    """Whether the client can print this: JSON-RPC with a number and a canonical name."""
    return case["dialect"] == "jsonRpc" and case["id"].isdigit() and case["params"] is not None


@pytest.mark.parametrize(
    "case",
    [case for case in golden("requests.json") if ours(case)],
    ids=lambda case: case["name"],
)
def test_requests_are_written_as_they_should_be(case: Dict[str, Any]) -> None:
    request = _protocol.new_request(case["method"], case["params"])
    assert request.text.replace(f'"id":{request.id},', f'"id":{case["id"]},') == case["text"]


def params_of(case: Dict[str, Any]) -> Dict[str, Any]:
    """The parameters as the functions of the package make them."""
    given = case["params"]
    timeout = given["timeout"] / 1000 if "timeout" in given else None
    if case["method"] == _protocol.CHAT:
        return _protocol.chat_params(
            given["message"], timeout, given.get("model"), given.get("conversationId")
        )
    if case["method"] == _protocol.SHOW_MESSAGE:
        return _protocol.show_message_params(
            given["message"], given["level"], given.get("buttons", ()), timeout
        )
    if case["method"] == _protocol.EXECUTE_COMMAND:
        params = _protocol.execute_command_params(given["command"], given.get("args", ()), timeout)
        if not params["args"]:
            del params["args"]  # always sent; no arguments and an empty list mean the same
        return params
    return _protocol.get_chat_history_params(given["conversationId"], given["limit"])


def vscode_methods() -> List[Dict[str, Any]]:
    return [case for case in golden("methods.json") if case["method"].startswith("vscode/")]


@pytest.mark.parametrize("case", vscode_methods(), ids=lambda case: json.dumps(case["params"]))
def test_parameters_are_made_as_they_should_be(case: Dict[str, Any]) -> None:
    assert params_of(case) == case["params"]


def test_results_are_understood() -> None:
    understood: List[object] = []
    for case in vscode_methods():
        if case["method"] == _protocol.CHAT:
            understood.append(_protocol.chat_text(case["result"]))
        elif case["method"] == _protocol.SHOW_MESSAGE:
            understood.append(_protocol.choice(case["result"]))
        elif case["method"] == _protocol.EXECUTE_COMMAND:
            understood.append(_protocol.members_of(case["result"]).get("result"))
        else:
            understood.append([m["role"] for m in _protocol.history_messages(case["result"])])
    assert understood == [
        "4",
        "[Copilot blocked: refusal and opened Copilot Chat]",
        None,
        "Yes",
        [1],
        None,
        ["user", "assistant"],
    ]
