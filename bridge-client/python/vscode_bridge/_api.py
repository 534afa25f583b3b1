"""The module's functions: methods of one object that chooses the bridge for each call."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional

from . import _debug, _endpoint
from ._client import Client
from ._methods import BlockingMethods
from ._protocol import ConversationLike

client = Client()
"""The one client of this process, which all functions share."""


class _ModuleBridge(BlockingMethods):
    """Uses the bridge of the debug adapter while there is one, otherwise the client."""

    def require(self) -> None:
        self._current().require()

    def request(
        self,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        return self._current().request(method, params, timeout)

    def _stream_chat(
        self, params: Mapping[str, Any], timeout: float, conversation: ConversationLike
    ) -> Iterator[str]:
        return self._current()._stream_chat(params, timeout, conversation)

    def _current(self) -> BlockingMethods:
        return _debug.installed() or client


_module_bridge = _ModuleBridge()

chat = _module_bridge.chat
chat_async = _module_bridge.chat_async
show_message = _module_bridge.show_message
execute_command = _module_bridge.execute_command
get_chat_history = _module_bridge.get_chat_history


def is_available() -> bool:
    """Whether there is a bridge to use: a debug adapter's, or one in the environment.

    Never raises and never blocks, so it does not check whether the bridge can be reached.
    """
    return _debug.installed() is not None or _endpoint.find() is not None
