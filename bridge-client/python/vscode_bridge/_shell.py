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
    """Output of a command could not be kept."""


@dataclass(frozen=True)
class Command:
    """What is known of a command when a wait for it has ended."""

    shell: str
    number: int
    """Its number in its shell."""
    state: str
    """``finished``, ``running`` or ``waitingForInput`` (a guess)."""
    text: str
    """What it has printed, as a terminal would show it; of much output both ends."""
    start: int
    """Where in the shell's log its output begins."""
    end: int
    """Where it ends, so far."""
    exit_code: Optional[int]
    """None while it runs, or if the shell was taken away under it."""
    cwd: Optional[str]
    """The shell's directory afterwards."""
    duration: Optional[float]
    lost: int
    """Bytes of output that could not be kept, since the shell's log is full; also a warning."""
    details: Dict[str, Any]
    """Everything as it came: PROTOCOL.md lists the members."""

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self.state == "finished"

    @property
    def ok(self) -> bool:
        """Whether it has ended with exit code 0."""
        return self.exit_code == 0


class Printed(str):
    """Output as a terminal would show it. A text that knows its place in the shell's log."""

    start: int
    end: int
    """Where to read on."""
    more: bool
    """Whether what was asked for, the command's output or the log, goes on there."""

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Printed:
        printed = cls(result["text"])
        printed.start, printed.end = int(result["start"]), int(result["end"])
        printed.more = bool(result["more"])
        return printed


class ShellMethods(CellMethods):
    """What can be done with a shell."""

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
        """Runs a text of any number of lines and waits for its end.

        The wait also ends after ``limit``, when nothing was printed for ``quiet``, or, if asked to,
        when the command seems to wait for input; and by Ctrl-C. The command goes on then.
        ``colours`` are kept in ``text`` if asked to. ``on_output`` is called with the output as it
        comes, with everything that a terminal gets.
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
        """Waits for the latest command, as ``run`` does. Its output comes from ``start`` on.

        With the number of a ``command``, it fails if that is not the latest.
        """
        params = _waiting(limit, quiet, return_on_input, colours)
        params.update(given(shell=self.name, command=command, **{"from": start}))
        return await self._command("shell/wait", params, start, on_output)

    @twin
    async def output(
        self, start: Optional[int] = None, *, size: Optional[int] = None, colours: bool = False
    ) -> Printed:
        """What the latest command printed, or the shell's log from an offset on, as shown.

        Of more than ``size`` bytes (64 KiB) whole lines come, and the rest with ``start`` at the
        ``end`` of the former text.
        """
        params = given(bytes=size, colours=colours, **{"from": start})
        return Printed.of(await self._shell("shell/read", params))

    @twin
    async def output_bytes(self, start: int, size: int) -> bytes:
        """Bytes of the log. Fewer come if there are fewer, or more than can be read at once."""
        return await log_of(self, self.name)(start, size)

    @twin
    async def type(self, text: str, *, enter: bool = True) -> None:
        """Types a text, and Enter."""
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
        """What a person runs to watch the shell, or to type along."""
        return str((await self._shell("shell/attach", {"readOnly": read_only}))["command"])

    @twin
    async def close(self) -> None:
        """Ends the shell with all its programs. Its log is gone."""
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
    """A shell that stays. Objects of the same name speak to the same one."""

    def __init__(self, client: Client, name: str, route: Route) -> None:
        super().__init__(client, route)
        self.name = name


class AsyncShell(ShellMethods, AsyncTwin):
    """A shell that stays, for asyncio: the methods of ``Shell``, to be awaited."""

    def __init__(self, client: AsyncClient, name: str, route: Route) -> None:
        super().__init__(client, route)
        self.name = name


S = TypeVar("S", Shell, AsyncShell)


class ShellsMethods(Twin, Generic[S]):
    """What can be done with the shells of a runtime; ``S`` are its shells."""

    @abstractmethod
    def shell(self, name: str = "main") -> S:
        """A shell by its name. It is started by its first ``run`` if it does not exist."""

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
        """Starts a shell, under a drawn name if none is given.

        Its terminal has 160 ``columns`` and 48 ``rows`` unless you say otherwise.
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
