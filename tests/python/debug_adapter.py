"""A small debug adapter, run as a process by the tests: DAP on stdin and stdout.

It does with `vscode_bridge` what the adapter of the original project does with its own: `launch`
installs a debug bridge and runs the program, here a piece of Python code; requests of the program
leave as `customRequest` events and are answered by `customRequestResponse`; `disconnect` ends the
debug session, but not the program.
"""

from __future__ import annotations

import queue
import sys
import threading
from itertools import count
from typing import Any, Dict

import vscode_bridge

import dap


class Adapter:
    def __init__(self) -> None:
        self._sequence = count(1)
        self._request_ids = count(0)
        self._waiting: Dict[int, queue.SimpleQueue[Dict[str, Any]]] = {}
        self._write_lock = threading.Lock()
        self._disconnected = threading.Event()

    def serve(self) -> None:
        while True:
            message = dap.read(sys.stdin.buffer)
            if message is None:
                return
            handler = getattr(self, f"on_{message['command']}")
            handler(message.get("arguments", {}))
            self._send({"type": "response", "request_seq": message["seq"], "success": True})

    def on_initialize(self, arguments: Dict[str, Any]) -> None:
        self._event("initialized", {})

    def on_launch(self, arguments: Dict[str, Any]) -> None:
        if not arguments.get("noDebug"):
            vscode_bridge.install_debug_bridge(self._ask_the_editor)
        threading.Thread(target=self._run, args=(arguments["code"],)).start()

    def on_customRequestResponse(self, arguments: Dict[str, Any]) -> None:  # noqa: N802
        self._waiting.pop(arguments["requestId"]).put(arguments)

    def on_disconnect(self, arguments: Dict[str, Any]) -> None:
        vscode_bridge.uninstall_debug_bridge()
        self._disconnected.set()

    def _ask_the_editor(self, request: Dict[str, Any]) -> Dict[str, Any]:
        request_id = next(self._request_ids)
        answer = self._waiting[request_id] = queue.SimpleQueue()
        body = {"requestId": request_id, "type": request["type"], "params": request["params"]}
        self._event("customRequest", body)
        limit = request["params"].get("timeout", 30_000) / 1000
        try:
            return answer.get(timeout=limit)
        except queue.Empty:
            return {"success": False, "error": f"Request timeout after {limit:g}s"}

    def _run(self, code: str) -> None:
        def say(value: object) -> None:
            self._event("output", {"output": str(value)})

        names: Dict[str, Any] = {
            "vscode_bridge": vscode_bridge,
            "say": say,
            "wait_for_disconnect": self._disconnected.wait,
        }
        try:
            exec(code, names)
        except Exception as error:
            say(f"{type(error).__name__}: {error}")
        self._event("terminated", {})

    def _event(self, name: str, body: Dict[str, Any]) -> None:
        self._send({"type": "event", "event": name, "body": body})

    def _send(self, message: Dict[str, Any]) -> None:
        with self._write_lock:
            dap.write(sys.stdout.buffer, {"seq": next(self._sequence), **message})


if __name__ == "__main__":
    Adapter().serve()
