"""The methods of an editor, written once for blocking code and for asyncio.

``Client``, ``AsyncClient`` and ``DebugBridge`` have the same methods, and differ in how they send a
request.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import (
    Any,
    Dict,
    Generic,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    TypeVar,
    Union,
    overload,
)

from . import _protocol
from ._async_result import AsyncResult
from ._protocol import Conversation, ConversationLike
from ._twins import Blocking, Shared, twin

CHAT_TIMEOUT = 30.0
COMMAND_TIMEOUT = 10.0

Answer = TypeVar("Answer")
Stream = TypeVar("Stream")


class EditorMethods(Shared, Generic[Answer, Stream]):
    """The methods of an editor. Timeouts are in seconds; 0 means the method's default.

    All of them raise ``BridgeError`` (a ``RuntimeError``) when the request does not succeed.
    ``chat`` returns an ``Answer``, or with ``stream=True`` a ``Stream``.
    """

    @abstractmethod
    def _stream_chat(
        self, params: Mapping[str, Any], timeout: float, conversation: ConversationLike
    ) -> Stream: ...

    @overload
    def chat(
        self,
        message: str,
        timeout: float = ...,
        *,
        model: Optional[str] = ...,
        conversation: ConversationLike = ...,
        stream: Literal[False] = ...,
    ) -> Answer: ...

    @overload
    def chat(
        self,
        message: str,
        timeout: float = ...,
        *,
        model: Optional[str] = ...,
        conversation: ConversationLike = ...,
        stream: Literal[True],
    ) -> Stream: ...

    def chat(
        self,
        message: str,
        timeout: float = CHAT_TIMEOUT,
        *,
        model: Optional[str] = None,
        conversation: ConversationLike = None,
        stream: bool = False,
    ) -> Any:
        """Asks the language model of the editor and returns its answer.

        If the model or the person declines, the answer is one sentence in brackets that says so.
        ``model`` is an id or a part of a name. ``conversation`` (a ``Conversation`` or an id)
        continues an earlier chat. With ``stream=True``, the result is an iterator of pieces of text
        as they come; ``close()`` it, or drop it, to cancel the request.
        """
        params = _protocol.chat_params(message, timeout, model, conversation)
        if stream:
            return self._stream_chat(params, timeout, conversation)
        return self._chat(params, timeout, conversation)

    @twin
    async def show_message(
        self,
        message: str,
        level: str = "info",
        *,
        buttons: Sequence[str] = (),
        timeout: Optional[float] = None,
    ) -> Optional[str]:
        """Shows a message of level ``info``, ``warning`` or ``error``.

        Returns None at once. With ``buttons``, it waits for the person and returns the text of the
        pressed button, or None if the message was dismissed.
        """
        params = _protocol.show_message_params(message, level, buttons, timeout)
        return _protocol.choice(await self._request(_protocol.SHOW_MESSAGE, params, timeout))

    @twin
    async def execute_command(
        self, command: str, *args: Any, timeout: float = COMMAND_TIMEOUT
    ) -> Any:
        """Runs an editor command and returns its return value."""
        params = _protocol.execute_command_params(command, args, timeout)
        result = await self._request(_protocol.EXECUTE_COMMAND, params, timeout)
        return _protocol.members_of(result).get("result")

    @twin
    async def get_chat_history(
        self, conversation_id: Union[str, Conversation], limit: int = 10
    ) -> List[Dict[str, Any]]:
        """The newest messages of a conversation, oldest first.

        Each has ``role`` (``user`` or ``assistant``), ``content`` and ``timestamp`` (milliseconds).
        """
        key = _protocol.conversation_id(conversation_id)
        if key is None:
            return []  # the conversation has no messages yet
        params = _protocol.get_chat_history_params(key, limit)
        return _protocol.history_messages(await self._request(_protocol.GET_CHAT_HISTORY, params))

    @twin
    async def _chat(
        self, params: Mapping[str, Any], timeout: float, conversation: ConversationLike
    ) -> str:
        result = await self._request(_protocol.CHAT, params, timeout)
        return _protocol.chat_text(result, conversation)


class BlockingMethods(EditorMethods[str, Iterator[str]], Blocking):
    """The methods of an editor for blocking code."""

    @abstractmethod
    def require(self) -> None:
        """Raises ``BridgeUnavailable`` if there is no bridge. Does not connect."""

    @abstractmethod
    def request(
        self,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        """Calls any method of the bridge or of a host and returns its result.

        ``timeout`` says how long to wait here. The timeout for the host is in ``params``.
        """

    async def _request(
        self, method: str, params: Mapping[str, Any], timeout: Optional[float] = None
    ) -> Any:
        return self.request(method, params, timeout)

    def chat_async(
        self,
        message: str,
        timeout: float = CHAT_TIMEOUT,
        *,
        model: Optional[str] = None,
        conversation: ConversationLike = None,
    ) -> AsyncResult:
        """Asks in a thread and returns at once. Raises only if there is no bridge."""
        self.require()
        return AsyncResult.of(
            lambda: self.chat(message, timeout, model=model, conversation=conversation)
        )
