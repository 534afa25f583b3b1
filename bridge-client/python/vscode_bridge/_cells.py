"""Cells: Python code in the IPython kernel of a shell. Public names are in ``tools``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional

from . import _protocol
from ._media import Media
from ._output import OnOutput
from ._protocol import given
from ._twins import Twin, twin


@dataclass(frozen=True)
class Cell:
    """The result of a cell."""

    text: str
    """Everything that it printed and displayed, as plain text; of very long output, both ends."""
    ended: str
    """``finished``, ``raised``, ``timedOut`` or ``kernelDied``."""
    pictures: List[Media] = field(repr=False)
    """The pictures that it displayed: PNG, JPEG, GIF and WebP."""
    omitted: int
    """Number of bytes that ``text`` leaves out."""
    new_kernel: Optional[str]
    """Why it ran in a new kernel, without earlier variables: ``restarted`` or ``wasStuck``."""
    details: Dict[str, Any] = field(repr=False)
    """The whole result: PROTOCOL.md lists its members."""

    @property
    def ok(self) -> bool:
        """Whether it ran to its end, without exception, timeout or death of the kernel."""
        return self.ended == "finished"


class CellMethods(Twin):
    """The methods of a shell's kernel."""

    name: str

    @twin
    async def cell(
        self,
        code: str,
        *,
        limit: Optional[float] = None,
        restart: bool = False,
        on_output: Optional[OnOutput] = None,
    ) -> Cell:
        """Runs Python code in the shell's IPython kernel, which keeps its variables.

        The kernel starts with the first cell, in the shell's directory and with the variables that
        the shell has exported. ``restart`` starts a new one. A cell that takes longer than
        ``limit`` (120 seconds) is interrupted. ``on_output`` is called with the output as it comes.
        """
        params = given(
            shell=self.name,
            code=code,
            restart=restart or None,
            limitMs=_protocol.optional_milliseconds(limit),
        )
        if on_output is None:
            return _cell(await self._tool("cell/run", params))
        show = on_output

        async def on_progress(value: Any) -> None:
            show(value["text"])

        params = {**params, "stream": True}
        return _cell(await self._follow_tool("cell/run", params, on_progress))

    @twin
    async def restart_kernel(self) -> None:
        """Ends the kernel of the shell, even while a cell runs. The next cell gets a new one."""
        await self._tool("cell/restart", {"shell": self.name})


def _cell(result: Mapping[str, Any]) -> Cell:
    pictures = result.get("pictures", ())
    return Cell(
        text=result["text"],
        ended=result["ended"],
        pictures=[Media.from_base64(each["mediaType"], each["base64"]) for each in pictures],
        omitted=result.get("omittedBytes", 0),
        new_kernel=result.get("newKernel"),
        details=dict(result),
    )
