"""Requests through a debug adapter: precedence, formats, and the return to the run bridge."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Iterator, List, Optional

import pytest

import vscode_bridge

import dap
from bridge import LIMIT, Daemon, chat_rule, clean_environment


class Editor:
    """The other end of a debug session: starts the adapter and speaks DAP with it."""

    def __init__(self, env: Dict[str, str]) -> None:
        self._adapter = subprocess.Popen(
            [sys.executable, "-u", str(Path(__file__).with_name("debug_adapter.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
        )
        self._messages: queue.SimpleQueue[Optional[Dict[str, Any]]] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._sequence = 0

    def _read(self) -> None:
        assert self._adapter.stdout is not None
        with self._adapter.stdout as stream:
            while True:
                message = dap.read(stream)
                self._messages.put(message)
                if message is None:
                    return

    def request(self, command: str, **arguments: Any) -> None:
        self._sequence += 1
        request = {"seq": self._sequence, "type": "request"}
        assert self._adapter.stdin is not None
        dap.write(self._adapter.stdin, {**request, "command": command, "arguments": arguments})

    def event(self, name: str) -> Dict[str, Any]:
        """The body of the next event of this name; responses before it must be successes."""
        while True:
            try:
                message = self._messages.get(timeout=LIMIT)
            except queue.Empty:
                raise AssertionError(f"no {name} event within {LIMIT:g}s") from None
            assert message is not None, f"the adapter ended before a {name} event"
            if message["type"] == "event":
                assert message["event"] == name, message
                body: Dict[str, Any] = message["body"]
                return body
            assert message["success"] is True

    def launch(self, code: str) -> None:
        self.request("initialize")
        self.event("initialized")
        self.request("launch", code=code)

    def answer(self, request_id: int, result: Dict[str, Any]) -> None:
        self.request("customRequestResponse", requestId=request_id, success=True, result=result)

    def end(self) -> None:
        assert self._adapter.stdin is not None
        self._adapter.stdin.close()
        try:
            assert self._adapter.wait(LIMIT) == 0
        finally:
            self._adapter.kill()
            self._reader.join(LIMIT)


@pytest.fixture
def editor(daemon: Daemon) -> Iterator[Editor]:
    """An editor whose adapter is also inside of a run."""
    editor = Editor(daemon.inner_environment())
    yield editor
    editor.end()


def test_requests_go_through_the_debug_adapter(editor: Editor) -> None:
    editor.launch(
        "vscode_bridge.show_message('Fired')\n"
        "say(vscode_bridge.chat('What is 2+2?', timeout=5))\n"
        "say(vscode_bridge.execute_command('act', 1, 2, 3))\n"
        "say(vscode_bridge.get_chat_history('c1', 2))\n"
        "say(list(vscode_bridge.chat('flow', stream=True)))\n"
    )
    shown = editor.event("customRequest")
    assert shown == {
        "requestId": 0,
        "type": "vscode/showMessage",
        "params": {"message": "Fired", "level": "info"},
    }
    editor.answer(0, {})
    assert editor.event("customRequest") == {
        "requestId": 1,
        "type": "vscode/chat",
        "params": {"message": "What is 2+2?", "timeout": 5000},
    }
    editor.answer(1, {"response": "4", "conversationId": "c1"})
    assert editor.event("output") == {"output": "4"}
    # The original project adds the timeout to the arguments here; it belongs beside them.
    assert editor.event("customRequest")["params"] == {
        "command": "act",
        "args": [1, 2, 3],
        "timeout": 10000,
    }
    editor.answer(2, {"result": "done"})
    assert editor.event("output") == {"output": "done"}
    assert editor.event("customRequest")["params"] == {"conversationId": "c1", "limit": 2}
    editor.answer(3, {"messages": []})
    assert editor.event("output") == {"output": "[]"}
    editor.event("customRequest")
    editor.answer(4, {"response": "whole"})
    assert editor.event("output") == {"output": "['whole']"}
    editor.event("terminated")


def test_a_failure_is_a_runtime_error(editor: Editor) -> None:
    editor.launch(
        "try:\n"
        "    vscode_bridge.chat('hi')\n"
        "except RuntimeError as error:\n"
        "    say(f'{type(error).__name__}: {error}')\n"
    )
    request_id = editor.event("customRequest")["requestId"]
    editor.request(
        "customRequestResponse", requestId=request_id, success=False, error="no model here"
    )
    assert editor.event("output") == {
        "output": "RequestFailed: VSCode request failed: no model here"
    }
    editor.event("terminated")


def test_no_answer_is_a_runtime_error(editor: Editor) -> None:
    editor.launch(
        "try:\n"
        "    vscode_bridge.chat('hi', timeout=0.1)\n"
        "except RuntimeError as error:\n"
        "    say(error)\n"
    )
    editor.event("customRequest")
    assert "timeout after 0.1s" in editor.event("output")["output"]
    editor.event("terminated")


def test_blocked_is_a_sentence(editor: Editor) -> None:
    editor.launch("say(vscode_bridge.chat('hi'))")
    request_id = editor.event("customRequest")["requestId"]
    editor.answer(request_id, {"blocked": True, "blockedReason": "off_topic"})
    assert editor.event("output") == {"output": "[Copilot blocked: off_topic]"}
    editor.event("terminated")


def test_leaving_the_session_falls_back_to_the_run_bridge(editor: Editor, daemon: Daemon) -> None:
    host = daemon.host(chat_rule())
    editor.launch(
        "say(vscode_bridge.chat('debugged'))\n"
        "wait_for_disconnect()\n"
        "say(vscode_bridge.chat('running'))\n"
    )
    editor.answer(editor.event("customRequest")["requestId"], {"response": "from the editor"})
    assert editor.event("output") == {"output": "from the editor"}
    editor.request("disconnect")
    assert editor.event("output") == {"output": "You said: running"}
    editor.event("terminated")
    assert host.request("vscode/chat")["message"] == "running"


def test_without_a_run_bridge_leaving_is_the_end(no_bridge: None) -> None:
    editor = Editor(clean_environment())
    try:
        editor.launch(
            "say(vscode_bridge.is_available())\n"
            "wait_for_disconnect()\n"
            "say(vscode_bridge.is_available())\n"
            "vscode_bridge.chat('hi')\n"
        )
        assert editor.event("output") == {"output": "True"}
        editor.request("disconnect")
        assert editor.event("output") == {"output": "False"}
        assert "BridgeUnavailable: VSCode bridge not init" in editor.event("output")["output"]
        editor.event("terminated")
    finally:
        editor.end()


class Recorder:
    """A send-request callback that records its requests."""

    def __init__(self, response: Dict[str, Any]) -> None:
        self.response = response
        self.requests: List[Dict[str, Any]] = []

    def __call__(self, request: Dict[str, Any]) -> Dict[str, Any]:
        self.requests.append(request)
        return self.response


def test_names_of_the_original_install_a_bridge(no_bridge: None) -> None:
    sent = Recorder({"success": True, "result": {"response": "yes"}})
    bridge = vscode_bridge.VSCodeBridge(sent)  # type: ignore[attr-defined]
    vscode_bridge._set_bridge(bridge)  # type: ignore[attr-defined]
    try:
        assert vscode_bridge.is_available()
        assert vscode_bridge.chat("hi") == "yes"
        assert bridge.chat("again", 3) == "yes"
        assert vscode_bridge.chat_async("later").wait(5) == "yes"
    finally:
        vscode_bridge._set_bridge(None)  # type: ignore[attr-defined]
    assert not vscode_bridge.is_available()
    assert [request["id"] for request in sent.requests] == [0, 1, 2]
    assert sent.requests[0] == {
        "id": 0,
        "type": "vscode/chat",
        "params": {"message": "hi", "timeout": 30000},
    }


def test_the_bridge_of_the_original_engine_is_found(
    no_bridge: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = Recorder({"success": True, "result": {}})
    engine = ModuleType("enginepy.vscode_bridge")
    engine._bridge = None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "enginepy.vscode_bridge", engine)
    assert not vscode_bridge.is_available()

    class EngineBridge:
        _send_request = staticmethod(sent)

    engine._bridge = EngineBridge()  # type: ignore[attr-defined]
    assert vscode_bridge.is_available()
    vscode_bridge.show_message("one")
    vscode_bridge.show_message("two")
    assert [request["id"] for request in sent.requests] == [0, 1]


def test_an_adapter_that_breaks_is_a_bridge_error(no_bridge: None) -> None:
    def broken(request: Dict[str, Any]) -> Dict[str, Any]:
        raise BrokenPipeError("stdout is closed")

    vscode_bridge.install_debug_bridge(broken)
    try:
        with pytest.raises(vscode_bridge.BridgeUnavailable, match="stdout is closed"):
            vscode_bridge.show_message("hi")
        with pytest.raises(vscode_bridge.RequestRefused, match="NaN"):
            vscode_bridge.execute_command("x", float("nan"))
    finally:
        vscode_bridge.uninstall_debug_bridge()
