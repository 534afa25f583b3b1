"""The methods of an editor as blocking Python methods.

``Client`` and ``DebugBridge`` differ in how a request travels, not in what can be asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Union, overload

from . import _protocol
from ._async_result import AsyncResult
from ._protocol import Conversation, ConversationLike

CHAT_TIMEOUT = 30.0
COMMAND_TIMEOUT = 10.0


class BlockingMethods(ABC):
    """What can be asked of an editor. Timeouts are in seconds; 0 means the method's default.

    All of them raise ``BridgeError`` (a ``RuntimeError``) when the request does not succeed.
    """

    @abstractmethod
    def require(self) -> None:
        """Raises ``BridgeUnavailable`` when no request can be made at all. Does not connect."""

    @abstractmethod
    def request(
        self,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        """Calls any method of the bridge or of a host and returns its result.

        ``timeout`` is how long to wait; what the host is told stands in ``params``.
        """

    @abstractmethod
    def _stream_chat(
        self, params: Mapping[str, Any], timeout: float, conversation: ConversationLike
    ) -> Iterator[str]: ...

    @overload
    def chat(
        self,
        message: str,
        timeout: float = ...,
        *,
        model: Optional[str] = ...,
        conversation: ConversationLike = ...,
        stream: Literal[False] = ...,
    ) -> str: ...

    @overload
    def chat(
        self,
        message: str,
        timeout: float = ...,
        *,
        model: Optional[str] = ...,
        conversation: ConversationLike = ...,
        stream: Literal[True],
    ) -> Iterator[str]: ...

    def chat(
        self,
        message: str,
        timeout: float = CHAT_TIMEOUT,
        *,
        model: Optional[str] = None,
        conversation: ConversationLike = None,
        stream: bool = False,
    ) -> Union[str, Iterator[str]]:
        """Asks the language model of the editor and returns its answer.

        When the model or the person declines, the answer is one sentence in brackets that says so.
        ``model`` is an id or a part of a name. ``conversation`` goes on with an earlier chat: a
        ``Conversation``, or an id. With ``stream=True`` the result is an iterator of text as it
        comes; ``close()`` it, or drop it, to cancel the request.
        """
        params = _protocol.chat_params(message, timeout, model, conversation)
        if stream:
            return self._stream_chat(params, timeout, conversation)
        return _protocol.chat_text(self.request(_protocol.CHAT, params, timeout), conversation)

    def chat_async(
        self,
        message: str,
        timeout: float = CHAT_TIMEOUT,
        *,
        model: Optional[str] = None,
        conversation: ConversationLike = None,
    ) -> AsyncResult:
        """Does the same in a thread and returns at once; only a missing bridge is an error here."""
        self.require()
        return AsyncResult.of(
            lambda: self.chat(message, timeout, model=model, conversation=conversation)
        )

    def show_message(
        self,
        message: str,
        level: str = "info",
        *,
        buttons: Sequence[str] = (),
        timeout: Optional[float] = None,
    ) -> Optional[str]:
        """Shows a message of level ``info``, ``warning`` or ``error``.

        Returns None at once. With ``buttons`` it waits for the person instead and returns the
        text of the button, or None when the message was dismissed.
        """
        params = _protocol.show_message_params(message, level, buttons, timeout)
        return _protocol.choice(self.request(_protocol.SHOW_MESSAGE, params, timeout))

    def execute_command(self, command: str, *args: Any, timeout: float = COMMAND_TIMEOUT) -> Any:
        """Runs a command of the editor and returns what it returned."""
        params = _protocol.execute_command_params(command, args, timeout)
        result = self.request(_protocol.EXECUTE_COMMAND, params, timeout)
        return _protocol.members_of(result).get("result")

    def get_chat_history(
        self, conversation_id: Union[str, Conversation], limit: int = 10
    ) -> List[Dict[str, Any]]:
        """The newest messages of a conversation, oldest first.

        Each has ``role`` (``user`` or ``assistant``), ``content`` and ``timestamp`` (milliseconds).
        """
        key = _protocol.conversation_id(conversation_id)
        if key is None:
            return []  # nothing has been said yet
        params = _protocol.get_chat_history_params(key, limit)
        return _protocol.history_messages(self.request(_protocol.GET_CHAT_HISTORY, params))
