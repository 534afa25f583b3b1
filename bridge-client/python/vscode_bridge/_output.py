"""Output of commands on its way to a callback."""

from __future__ import annotations

import base64
import codecs
from typing import Awaitable, Callable, Optional

from ._twins import Twin

READ_BYTES = 1 << 20
"""Output that is read at once."""

OnOutput = Callable[[str], object]
"""Gets text; what it returns does not matter."""

ReadLog = Callable[[int, int], Awaitable[bytes]]
"""Reads bytes of a shell's log: from where, and how many at most."""


class Output:
    """Hands output on as it comes, where the command is awaited.

    The bridge drops pieces for a slow reader. Their offsets show what is missing, and it is read
    from the shell's log.
    """

    def __init__(self, on_output: OnOutput, read_log: ReadLog, start: Optional[int] = None) -> None:
        self._on_output = on_output
        self._read_log = read_log
        self._next = start
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def piece(self, data: bytes, start: int, end: int) -> None:
        """Takes a piece that lies at this place."""
        await self._fill(start)
        self._show(data)
        self._next = end

    async def finish(self, start: int, end: int) -> None:
        """Takes the end of the output, which began and ends there."""
        self._next = start if self._next is None else self._next
        await self._fill(end)

    def flush(self) -> None:
        """Shows the beginning of a character that was left."""
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
    """Reads the log of a shell."""

    async def read(start: int, size: int) -> bytes:
        params = {"shell": shell, "from": start, "bytes": size, "raw": True}
        return base64.b64decode((await twin._tool("shell/read", params))["base64"])

    return read
