"""Requests through a debug adapter, which is preferred to the run bridge.

While a net is being debugged, requests go through the debug adapter: it sends the editor a
``customRequest`` event and gets a ``customRequestResponse`` request back. The adapter installs a
callback that does this; this module only calls it. The callback takes and returns what the one of
the original project does::

    {"id": 0, "type": "vscode/chat", "params": {...}}
    {"success": True, "result": {...}}   or   {"success": False, "error": "text"}

The adapter of the original engine installs its bridge in ``enginepy.vscode_bridge``. That one is
used, too, so code that imports ``vscode_bridge`` works while the original engine debugs it.
"""

from __future__ import annotations

import sys
from itertools import count
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

from . import _protocol
from ._exceptions import BridgeError, BridgeUnavailable, RequestFailed
from ._methods import BlockingMethods
from ._protocol import ConversationLike

SendRequest = Callable[[Dict[str, Any]], Dict[str, Any]]

_installed: Optional[DebugBridge] = None
_of_engine: Optional[DebugBridge] = None


class DebugBridge(BlockingMethods):
    """Sends requests through the callback of a debug adapter."""

    def __init__(self, send_request_callback: SendRequest) -> None:
        self._send_request = send_request_callback
        self._ids = count(0)

    def require(self) -> None:
        pass

    def request(
        self,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        request = {"id": next(self._ids), "type": method, "params": dict(params or {})}
        _protocol.to_json(method, request)
        try:
            response = self._send_request(request)
        except BridgeError:
            raise
        except Exception as error:
            raise BridgeUnavailable(
                f"The debug adapter could not pass on {method}: {error}. Is the session over?"
            ) from error
        if not response.get("success"):
            raise RequestFailed(f"VSCode request failed: {response.get('error', 'Unknown error')}")
        return response.get("result")

    def _stream_chat(
        self, params: Mapping[str, Any], timeout: float, conversation: ConversationLike
    ) -> Iterator[str]:
        # Debug adapters do not support progress: the whole answer comes in one piece.
        text = _protocol.chat_text(self.request(_protocol.CHAT, params, timeout), conversation)
        return iter([text] if text else [])


def install_debug_bridge(send_request: SendRequest) -> DebugBridge:
    """Sends the requests of the module's functions through ``send_request`` from now on."""
    bridge = DebugBridge(send_request)
    set_bridge(bridge)
    return bridge


def uninstall_debug_bridge() -> None:
    """Sends requests through the run bridge again, if there is one. For the end of debugging."""
    set_bridge(None)


def set_bridge(bridge: Optional[DebugBridge]) -> None:
    """Installs or, with None, uninstalls a bridge. For adapters of the original project."""
    global _installed
    _installed = bridge


def installed() -> Optional[DebugBridge]:
    """The bridge that a debug adapter has installed, here or in the original engine."""
    if _installed is not None:
        return _installed
    engine = sys.modules.get("enginepy.vscode_bridge")
    callback = getattr(getattr(engine, "_bridge", None), "_send_request", None)
    if not callable(callback):
        return None
    global _of_engine
    if _of_engine is None or _of_engine._send_request != callback:
        _of_engine = DebugBridge(callback)
    return _of_engine
