"""The client for asyncio programs."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Awaitable, Mapping, Optional, Tuple

from . import _endpoint, _protocol
from ._call import Call, streamed
from ._connection import Connection
from ._context import AsyncContext
from ._endpoint import Endpoint
from ._exceptions import BridgeError
from ._methods import EditorMethods
from ._protocol import ConversationLike, StreamedText
from ._twins import Asynchronous

CLOSE_LIMIT = 2.0
"""Seconds that ``close`` may take."""


class AsyncClient(EditorMethods[Awaitable[str], "AsyncChatStream"], Asynchronous, AsyncContext):
    """A connection to the bridge on the running event loop.

    The methods are those of ``Client``, to be awaited. Any number of requests may be in flight.
    Cancelling the task that awaits one cancels the request, also at the editor.

    >>> async with AsyncClient() as client:  # doctest: +SKIP
    ...     print(await client.chat("What is 2+2?"))
    """

    def __init__(self, endpoint: Optional[Endpoint] = None) -> None:
        self._find_endpoint = _endpoint.finder(endpoint)
        self._connection: Optional[Connection] = None

    async def close(self) -> None:
        """Ends the connection. Requests that still wait are cancelled; a later one reconnects."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close(CLOSE_LIMIT)

    async def _leave(self) -> None:
        await self.close()

    async def request(
        self,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        """Calls any method of the bridge or of a host and returns its result."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def on_done(result: Any, error: Optional[BridgeError]) -> None:
            if answer.done():
                return  # the awaiting task was cancelled at the same time
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)

        call = Call(_protocol.new_request(method, params or {}), timeout, on_done)
        self._start(call)
        try:
            return await answer
        except asyncio.CancelledError:
            self._cancel(call)
            raise

    async def _request(
        self, method: str, params: Mapping[str, Any], timeout: Optional[float] = None
    ) -> Any:
        return await self.request(method, params, timeout)

    def _stream_chat(
        self, params: Mapping[str, Any], timeout: float, conversation: ConversationLike
    ) -> AsyncChatStream:
        return AsyncChatStream(self, params, timeout, conversation)

    def _start(self, call: Call) -> None:
        if self._connection is None:
            self._find_endpoint()
            loop = asyncio.get_running_loop()
            self._connection = Connection(loop, self._find_endpoint)
        self._connection.start(call)

    def _cancel(self, call: Call) -> None:
        if self._connection is not None:
            self._connection.cancel(call)


class AsyncChatStream(AsyncIterator[str], AsyncContext):
    """The text of a chat as it comes. At the end, ``response`` is all of it.

    The request is cancelled when the stream is closed, when its ``async with`` block ends, or when
    the task that reads it is cancelled.
    """

    def __init__(
        self,
        client: AsyncClient,
        params: Mapping[str, Any],
        timeout: float,
        conversation: ConversationLike,
    ) -> None:
        self.response: Optional[str] = None
        self._conversation = conversation
        self._text = StreamedText()
        self._pieces: asyncio.Queue[Tuple[bool, Any]] = asyncio.Queue()
        self._ended = False
        self._call = streamed(_protocol.CHAT, params, timeout, self._pieces.put_nowait)
        self._client = client
        client._start(self._call)

    def __aiter__(self) -> AsyncChatStream:
        return self

    async def __anext__(self) -> str:
        while not self._ended:
            try:
                last, value = await self._pieces.get()
            except asyncio.CancelledError:
                self.close()
                raise
            piece = self._finish(value) if last else self._text.piece(value)
            if piece:
                return piece
        raise StopAsyncIteration

    async def _leave(self) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the request if it is still in flight."""
        if not self._ended:
            self._ended = True
            self._client._cancel(self._call)

    def _finish(self, value: Any) -> str:
        self._ended = True
        if isinstance(value, BridgeError):
            raise value
        self.response = _protocol.chat_text(value, self._conversation)
        return self._text.rest(value)
