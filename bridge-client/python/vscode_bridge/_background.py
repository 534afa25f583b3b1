"""A connection for blocking code: an event loop in a background thread.

Reasons for a thread with a loop instead of a blocking socket: only this thread uses the socket, so
an interrupted caller (Ctrl-C) never leaves half a message behind, a large request never keeps
answers from being read, and any number of threads can wait at the same time.

The thread starts with the first request. It ends when the client is closed or the interpreter ends,
and it never keeps the interpreter alive. After ``fork``, the child has the objects but not the
thread, so it forgets them, closes its copy of the socket, and opens a new connection.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from typing import Any, Callable, Coroutine

from ._call import Call
from ._connection import Connection
from ._endpoint import Endpoint
from ._exceptions import BridgeUnavailable

EXIT_LIMIT = 0.5
"""Seconds that closing the connection may take when the interpreter ends."""

_running: "weakref.WeakSet[Background]" = weakref.WeakSet()


class Background:
    """A ``Connection`` and the thread that it runs in."""

    def __init__(self, find_endpoint: Callable[[], Endpoint]) -> None:
        self._loop = asyncio.new_event_loop()
        self._connection = Connection(self._loop, find_endpoint)
        self._thread = threading.Thread(target=self._run, name="vscode_bridge", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # the interpreter is ending, or there are too many threads
            self._loop.close()
            raise BridgeUnavailable(f"The bridge cannot be used now: {error}.") from error
        self.over = False
        """True after the thread was told to end, and in a forked child, which has no thread."""
        _running.add(self)

    def start(self, call: Call) -> None:
        """Sends a request; ``call.on_done`` will be called in the background thread."""
        self._loop.call_soon_threadsafe(self._connection.start, call)

    def cancel(self, call: Call) -> None:
        """Forgets a request and cancels it at the bridge."""
        if not self.over:
            self._loop.call_soon_threadsafe(self._connection.cancel, call)

    def close(self, limit: float) -> None:
        """Ends connection and thread within about ``limit`` seconds. Waiting requests fail."""
        self._end(self._connection.close(limit))
        if threading.current_thread() is not self._thread:
            self._thread.join(2 * limit)

    def leave(self) -> None:
        """Ends connection and thread without waiting, for a client that is no longer used."""
        self._end(self._connection.close(EXIT_LIMIT))

    def hang_up(self) -> None:
        """Ends connection and thread at the end of the interpreter, without waking callers."""
        self._end(self._connection.hang_up(EXIT_LIMIT))
        self._thread.join(2 * EXIT_LIMIT)

    def abandon(self) -> None:
        """In a forked child: releases what belongs to the parent."""
        self.over = True
        sock = self._connection.socket
        if sock is not None:
            sock.close()

    def _end(self, goodbye: Coroutine[Any, Any, None]) -> None:
        if self.over:
            goodbye.close()
            return
        self.over = True
        _running.discard(self)

        async def end() -> None:
            await goodbye
            self._loop.stop()

        self._loop.call_soon_threadsafe(lambda: self._loop.create_task(end()))

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


# A forked child keeps the objects of its parent, so that no destructor runs on an event loop whose
# thread does not exist.
_left_behind: "list[Background]" = []


def _after_fork_in_child() -> None:
    for background in list(_running):
        background.abandon()
        _left_behind.append(background)
    _running.clear()


def _at_exit() -> None:
    for background in list(_running):
        background.hang_up()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
