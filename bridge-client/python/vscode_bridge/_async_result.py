"""The result of ``chat_async``: a future answer."""

from __future__ import annotations

import threading
from itertools import count
from typing import Callable, List, Optional

from ._exceptions import BridgeTimeout

_ids = count(1)


class AsyncResult:
    """The future answer of a chat, which a thread waits for.

    ``done``, ``result``, ``error`` and ``add_done_callback`` are those of the original project and
    never block. ``wait`` blocks.
    """

    def __init__(self) -> None:
        self.id = next(_ids)
        self._text: Optional[str] = None
        self._exception: Optional[BaseException] = None
        self._callbacks: List[Callable[[AsyncResult], object]] = []
        self._lock = threading.Lock()
        self._finished = threading.Event()

    @classmethod
    def of(cls, work: Callable[[], str]) -> AsyncResult:
        """Starts the work. Its thread does not keep the interpreter alive."""
        pending = cls()
        thread = threading.Thread(
            target=pending._run, args=(work,), name=f"chat_async-{pending.id}", daemon=True
        )
        thread.start()
        return pending

    def done(self) -> bool:
        """Whether the answer or an error has come."""
        return self._finished.is_set()

    def result(self) -> Optional[str]:
        """The answer; None before it has come, and if there is an error."""
        return self._text

    def error(self) -> Optional[str]:
        """The error as text; None if there is none."""
        return None if self._exception is None else str(self._exception)

    def wait(self, timeout: Optional[float] = None) -> str:
        """Waits for the answer and returns it, or raises the error."""
        if not self._finished.wait(timeout):
            raise BridgeTimeout(
                f"No answer yet after waiting {timeout:g}s; the request goes on. Wait again."
            )
        if self._exception is not None:
            raise self._exception
        return self._text or ""

    def add_done_callback(self, callback: Callable[[AsyncResult], object]) -> None:
        """Calls ``callback(self)`` when the answer has come; at once if it already has."""
        with self._lock:
            if not self._finished.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def _run(self, work: Callable[[], str]) -> None:
        try:
            self._text = work()
        except BaseException as error:
            self._exception = error
        with self._lock:
            self._finished.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
