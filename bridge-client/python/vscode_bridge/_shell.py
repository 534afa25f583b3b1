"""Shells, and the commands that run in them. Public names are in ``tools``."""

from __future__ import annotations

import base64
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Generic, List, Mapping, Optional, TypeVar

from . import _protocol
from ._cells import CellMethods
from ._output import OnOutput, Output, log_of
from ._protocol import given
from ._route import Route
from ._twins import AsyncTwin, BlockingTwin, Twin, twin

if TYPE_CHECKING:
    from ._async_client import AsyncClient
    from ._client import Client


class OutputLost(RuntimeWarning):
    """Warns that output of a command was lost."""


@dataclass(frozen=True)
class Command:
    """The state of a command when a wait for it has ended."""

    shell: str
    number: int
    """Its number in its shell."""
    state: str
    """``finished``, ``running`` or ``waitingForInput`` (a guess)."""
    text: str
    """Its output as a terminal would show it; of long output, the beginning and the end."""
    start: int
    """Offset of its output in the shell's log."""
    end: int
    """Offset after its output so far."""
    exit_code: Optional[int]
    """None while it runs, or if the shell ended before it could report one."""
    cwd: Optional[str]
    """The shell's directory afterwards."""
    duration: Optional[float]
    lost: int
    """Number of bytes of output that were lost, because the log is full. Also a warning."""
    details: Dict[str, Any]
    """The whole result: PROTOCOL.md lists its members."""

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self.state == "finished"

    @property
    def ok(self) -> bool:
        """Whether it has ended with exit code 0."""
        return self.exit_code == 0


class Printed(str):
    """Output as a terminal would show it, with its offsets in the shell's log."""

    start: int
    end: int
    """Offset after this text. The next read begins here."""
    more: bool
    """Whether there is more after ``end``: of the command's output or of the log."""

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Printed:
        printed = cls(result["text"])
        printed.start, printed.end = int(result["start"]), int(result["end"])
        printed.more = bool(result["more"])
        return printed


class ShellMethods(CellMethods):
    """The methods of a shell."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @twin
    async def run(
        self,
        command: str,
        *,
        limit: Optional[float] = None,
        quiet: Optional[float] = None,
        return_on_input: bool = False,
        colours: bool = False,
        on_output: Optional[OnOutput] = None,
    ) -> Command:
        """Runs a command of any number of lines and waits for its end.

        The wait also ends after ``limit``, when nothing was printed for ``quiet``, by Ctrl-C, and,
        with ``return_on_input``, when the command seems to wait for input. The command keeps
        running then. With ``colours``, ``text`` keeps colours. ``on_output`` is called with the
        output as it comes, including escape sequences.
        """
        params = _waiting(limit, quiet, return_on_input, colours)
        params.update(shell=self.name, command=command, create=True)
        return await self._command("shell/run", params, None, on_output)

    @twin
    async def wait(
        self,
        *,
        command: Optional[int] = None,
        limit: Optional[float] = None,
        quiet: Optional[float] = None,
        return_on_input: bool = False,
        colours: bool = False,
        start: Optional[int] = None,
        on_output: Optional[OnOutput] = None,
    ) -> Command:
        """Waits for the latest command, as ``run`` does. The output is shown from ``start`` on.

        Fails if ``command``, the number of a command, is not the latest.
        """
        params = _waiting(limit, quiet, return_on_input, colours)
        params.update(given(shell=self.name, command=command, **{"from": start}))
        return await self._command("shell/wait", params, start, on_output)

    @twin
    async def output(
        self, start: Optional[int] = None, *, size: Optional[int] = None, colours: bool = False
    ) -> Printed:
        """The output of the latest command, or the shell's log from an offset, as text.

        If there are more than ``size`` bytes (64 KiB), only whole lines within them are returned.
        Read the rest with ``start`` set to ``end`` of this text.
        """
        params = given(bytes=size, colours=colours, **{"from": start})
        return Printed.of(await self._shell("shell/read", params))

    @twin
    async def output_bytes(self, start: int, size: int) -> bytes:
        """Bytes of the log. Fewer than ``size`` at the end of the log, or beyond the maximum."""
        return await log_of(self, self.name)(start, size)

    @twin
    async def type(self, text: str, *, enter: bool = True) -> None:
        """Types a text and presses Enter."""
        await self._shell("shell/input", {"text": text, "enter": enter})

    @twin
    async def press(self, *keys: str) -> None:
        """Presses keys: ``C-c``, ``C-d``, ``UP``, ``ENTER``, ``TAB``, ``ESC``, ``F1`` and so on."""
        await self._shell("shell/keys", {"keys": list(keys)})

    @twin
    async def interrupt(self) -> None:
        """Presses Ctrl-C."""
        await self._shell("shell/keys", {"keys": ["C-c"]})

    @twin
    async def signal(self, name: str) -> None:
        """Signals the programs in the foreground: ``INT``, ``TERM``, ``KILL`` and so on."""
        await self._shell("shell/signal", {"signal": name})

    @twin
    async def resize(self, columns: int, rows: int) -> None:
        """Changes the size of the terminal."""
        await self._shell("shell/resize", {"columns": columns, "rows": rows})

    @twin
    async def attach_command(self, *, read_only: bool = False) -> str:
        """The command line with which a person can watch the shell, or type into it."""
        return str((await self._shell("shell/attach", {"readOnly": read_only}))["command"])

    @twin
    async def close(self) -> None:
        """Ends the shell with all its programs, and removes its log."""
        await self._shell("shell/close", {})

    async def _shell(self, method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
        return await self._tool(method, {"shell": self.name, **params})

    async def _command(
        self,
        method: str,
        params: Mapping[str, Any],
        start: Optional[int],
        on_output: Optional[OnOutput],
    ) -> Command:
        if on_output is None:
            return _command(await self._tool(method, params))
        output = Output(on_output, log_of(self, self.name), start)

        async def on_progress(value: Any) -> None:
            offset, data = int(value["offset"]), base64.b64decode(value["base64"])
            await output.piece(data, offset, offset + len(data))

        params = {**params, "stream": True}
        command = _command(await self._follow_tool(method, params, on_progress))
        if command.details.get("ended") in (None, "atPrompt", "shellExited"):
            await output.finish(command.start, command.end)
        output.flush()
        return command


class Shell(ShellMethods, BlockingTwin):
    """A persistent shell. Objects with the same name use the same shell."""

    def __init__(self, client: Client, name: str, route: Route) -> None:
        super().__init__(client, route)
        self.name = name


class AsyncShell(ShellMethods, AsyncTwin):
    """A persistent shell for asyncio: the methods of ``Shell``, to be awaited."""

    def __init__(self, client: AsyncClient, name: str, route: Route) -> None:
        super().__init__(client, route)
        self.name = name


S = TypeVar("S", Shell, AsyncShell)


class ShellsMethods(Twin, Generic[S]):
    """The methods for the shells of a runtime. ``S`` is the class of a shell."""

    @abstractmethod
    def shell(self, name: str = "main") -> S:
        """A shell by its name. If it does not exist, its first ``run`` starts it."""

    @twin
    async def create_shell(
        self,
        name: Optional[str] = None,
        *,
        cwd: Optional[str] = None,
        environment: Optional[Mapping[str, str]] = None,
        columns: Optional[int] = None,
        rows: Optional[int] = None,
    ) -> S:
        """Starts a shell. Without a name, a random one is chosen.

        By default, its terminal has 160 ``columns`` and 48 ``rows``.
        """
        params = given(
            shell=name,
            cwd=None if cwd is None else self._route.file(cwd),
            environment=dict(environment or {}),
            columns=columns,
            rows=rows,
        )
        return self.shell(str((await self._tool("shell/create", params))["shell"]))

    @twin
    async def shells(self) -> List[Dict[str, Any]]:
        """All shells: ``shell``, ``state``, ``command``, ``cwd``, ``pid`` and more of each."""
        return list((await self._tool("shell/list", {}))["shells"])


def _waiting(
    limit: Optional[float], quiet: Optional[float], return_on_input: bool, colours: bool
) -> Dict[str, Any]:
    return given(
        limitMs=_protocol.optional_milliseconds(limit),
        quietMs=_protocol.optional_milliseconds(quiet),
        returnOnInput=return_on_input,
        colours=colours,
    )


def _command(details: Dict[str, Any]) -> Command:
    output = _protocol.members_of(details.get("output"))
    duration = details.get("durationMs")
    lost = int(output.get("lost", 0))
    if lost:
        warnings.warn(
            f"{lost} bytes of output were lost: the log of shell {details.get('shell')}, or its "
            "disk, is full. Close the shell to begin a new log.",
            OutputLost,
            stacklevel=2,
        )
    return Command(
        shell=str(details.get("shell")),
        number=int(details.get("command", 0)),
        state=str(details.get("state")),
        text=str(output.get("text", "")),
        start=int(output.get("start", 0)),
        end=int(output.get("end", 0)),
        exit_code=details.get("exitCode"),
        cwd=details.get("cwd"),
        duration=None if duration is None else duration / 1000,
        lost=lost,
        details=details,
    )
