"""Passes the output of commands to a callback."""

from __future__ import annotations

import base64
import codecs
from typing import Awaitable, Callable, Optional

from ._twins import Twin

READ_BYTES = 1 << 20
"""Number of bytes that are read with one request."""

OnOutput = Callable[[str], object]
"""A callback for text. Its return value is ignored."""

ReadLog = Callable[[int, int], Awaitable[bytes]]
"""Reads bytes of a shell's log, from an offset and at most so many."""


class Output:
    """Passes output on as it comes, in the thread or task that waits for the command.

    The bridge drops pieces for a slow reader. The offsets show what is missing, and the missing
    bytes are read from the shell's log.
    """

    def __init__(self, on_output: OnOutput, read_log: ReadLog, start: Optional[int] = None) -> None:
        self._on_output = on_output
        self._read_log = read_log
        self._next = start
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def piece(self, data: bytes, start: int, end: int) -> None:
        """Takes a piece with these offsets in the log."""
        await self._fill(start)
        self._show(data)
        self._next = end

    async def finish(self, start: int, end: int) -> None:
        """Takes the offsets of the whole output, and passes on what is still missing."""
        self._next = start if self._next is None else self._next
        await self._fill(end)

    def flush(self) -> None:
        """Passes on the bytes of an incomplete character that were held back."""
        self._show(b"", final=True)

    async def _fill(self, offset: int) -> None:
        while self._next is not None and self._next < offset:
            data = await self._read_log(self._next, min(READ_BYTES, offset - self._next))
            if not data:
                return
            self._show(data)
            self._next += len(data)

    def _show(self, data: bytes, final: bool = False) -> None:
        text = self._decoder.decode(data, final)
        if text:
            self._on_output(text)


def log_of(twin: Twin, shell: str) -> ReadLog:
    """A function that reads the log of a shell."""

    async def read(start: int, size: int) -> bytes:
        params = {"shell": shell, "from": start, "bytes": size, "raw": True}
        return base64.b64decode((await twin._tool("shell/read", params))["base64"])

    return read
