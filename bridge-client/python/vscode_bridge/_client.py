"""The blocking client."""

from __future__ import annotations

import os
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Tuple

from . import _endpoint, _protocol
from ._call import Call, streamed
from ._context import BlockingContext
from ._endpoint import Endpoint
from ._exceptions import BridgeError
from ._methods import BlockingMethods
from ._protocol import ConversationLike, StreamedText

if TYPE_CHECKING:
    from ._background import Background

CLOSE_LIMIT = 2.0
"""Seconds that ``close`` may take."""

# Held while a request is passed to the thread, so that ``close`` cannot end the thread meanwhile.
_lock = threading.Lock()


def _after_fork_in_child() -> None:
    # Another thread of the parent may have held the lock.
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class Client(BlockingMethods, BlockingContext):
    """A connection to the bridge for blocking code.

    Opens at the first request. Many threads may use it at the same time. Ctrl-C during a request
    cancels it, also at the editor. Without an ``endpoint``, the environment is read each time that
    a connection is opened.

    >>> with Client() as client:  # doctest: +SKIP
    ...     client.show_message("Hello")
    """

    def __init__(self, endpoint: Optional[Endpoint] = None) -> None:
        # Not a bound method: the background thread refers to it, and would keep the client alive.
        self._find_endpoint = _endpoint.finder(endpoint)
        self._background: Optional[Background] = None

    def __del__(self) -> None:
        background = getattr(self, "_background", None)
        if background is not None:
            background.leave()

    def close(self) -> None:
        """Ends the connection. Requests of other threads that still wait are cancelled.

        A later request opens a new connection.
        """
        with _lock:
            background, self._background = self._background, None
        if background is not None:
            background.close(CLOSE_LIMIT)

    def _leave(self) -> None:
        self.close()

    def require(self) -> None:
        self._find_endpoint()

    def request(
        self,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        answer = _Answer()
        call = Call(_protocol.new_request(method, params or {}), timeout, answer.set)
        try:
            self._start(call)
            return answer.wait()
        except BridgeError:
            raise
        except BaseException:  # Ctrl-C, or an exception of a signal handler
            self._cancel(call)
            raise

    def _stream_chat(
        self, params: Mapping[str, Any], timeout: float, conversation: ConversationLike
    ) -> Iterator[str]:
        return ChatStream(self, params, timeout, conversation)

    def _start(self, call: Call) -> None:
        with _lock:
            if self._background is None or self._background.over:
                self.require()  # fails before a thread is started in vain
                # WebSocket and asyncio are not imported before the first request.
                from ._background import Background

                self._background = Background(self._find_endpoint)
            self._background.start(call)

    def _cancel(self, call: Call) -> None:
        background = self._background
        if background is not None:
            background.cancel(call)


class _Answer:
    """Passes a result from the background thread to the thread that waits."""

    def __init__(self) -> None:
        self._there = threading.Event()
        self._result: Any = None
        self._error: Optional[BridgeError] = None

    def set(self, result: Any, error: Optional[BridgeError]) -> None:
        self._result, self._error = result, error
        self._there.set()

    def wait(self) -> Any:
        # The background thread keeps the deadline, so this wait needs no timeout of its own.
        self._there.wait()
        if self._error is not None:
            raise self._error
        return self._result


class ChatStream(Iterator[str]):
    """The text of a chat as it comes. At the end, ``response`` is all of it."""

    def __init__(
        self,
        client: Client,
        params: Mapping[str, Any],
        timeout: float,
        conversation: ConversationLike,
    ) -> None:
        self.response: Optional[str] = None
        self._conversation = conversation
        self._text = StreamedText()
        self._pieces: SimpleQueue[Tuple[bool, Any]] = SimpleQueue()
        self._ended = False
        # The call refers only to the queue, so a stream that nobody reads any more is collected,
        # and its request is cancelled.
        self._call = streamed(_protocol.CHAT, params, timeout, self._pieces.put)
        self._client = client
        client._start(self._call)

    def __iter__(self) -> ChatStream:
        return self

    def __next__(self) -> str:
        while not self._ended:
            try:
                last, value = self._pieces.get()
            except BaseException:
                self.close()
                raise
            piece = self._finish(value) if last else self._text.piece(value)
            if piece:
                return piece
        raise StopIteration

    def close(self) -> None:
        """Cancels the request if it is still in flight."""
        if not self._ended:
            self._ended = True
            self._client._cancel(self._call)

    def __del__(self) -> None:
        if hasattr(self, "_client"):
            self.close()

    def _finish(self, value: Any) -> str:
        self._ended = True
        if isinstance(value, BridgeError):
            raise value
        self.response = _protocol.chat_text(value, self._conversation)
        return self._text.rest(value)
