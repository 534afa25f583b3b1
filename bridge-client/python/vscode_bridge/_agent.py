"""The methods of agents. Public names are in ``agent``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Type, TypeVar

from . import _protocol
from ._exceptions import RequestFailed
from ._observations import (
    BrowseObservation,
    CellObservation,
    EditObservation,
    Observation,
    ReadObservation,
    RunObservation,
    WriteObservation,
    observation_of,
)
from ._output import OnOutput, Output, log_of
from ._protocol import given
from ._route import PathLike, Route
from ._twins import AsyncConnected, BlockingConnected, Twin, twin

if TYPE_CHECKING:
    from ._async_client import AsyncClient
    from ._client import Client

Kind = TypeVar("Kind", bound=Observation)


class AgentMethods(Twin):
    """The actions of an agent."""

    shell: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shell={self.shell!r})"

    # Commands and cells.

    @twin
    async def run(
        self,
        command: str,
        *,
        timeout: Optional[float] = None,
        blocking: Optional[bool] = None,
        fresh: bool = False,
        cwd: Optional[str] = None,
        hidden: bool = False,
        action_id: Optional[str] = None,
        on_output: Optional[OnOutput] = None,
    ) -> RunObservation:
        """Runs one command, which may be a list joined with ``&&`` or ``;``, and waits for its end.

        Without a ``timeout``, the wait also ends when nothing was printed for 10 seconds, unless
        ``blocking`` is true. With a ``timeout``, it ends shortly before that; silence ends it only
        with ``blocking=False``. The command keeps running then: ``wait`` for it, ``send_input`` to
        it or ``interrupt`` it.

        ``on_output`` is called with the output as it comes, including escape sequences. A ``fresh``
        command runs in a new shell, in ``cwd``, and does not wait for other commands. ``content``
        of long output has its beginning and end; with ``hidden``, all of it. ``cancel`` finds the
        action by its ``action_id``.
        """
        args = given(command=command, cwd=cwd, hidden=hidden or None, is_static=fresh or None)
        return await self._command(
            args, blocking=blocking, timeout=timeout, action_id=action_id, on_output=on_output
        )

    @twin
    async def wait(
        self, *, timeout: Optional[float] = None, on_output: Optional[OnOutput] = None
    ) -> RunObservation:
        """Waits again for a running command. ``content`` is the new output."""
        return await self._command({"command": ""}, timeout=timeout, on_output=on_output)

    @twin
    async def send_input(
        self, text: str, *, timeout: Optional[float] = None, on_output: Optional[OnOutput] = None
    ) -> RunObservation:
        """Types a line, or a key such as ``C-d``, into a running command, and waits again."""
        args = {"command": text, "is_input": True}
        return await self._command(args, timeout=timeout, on_output=on_output)

    @twin
    async def interrupt(self, *, timeout: Optional[float] = None) -> RunObservation:
        """Interrupts a running command with Ctrl-C, and waits for it."""
        return await self._command({"command": "C-c", "is_input": True}, timeout=timeout)

    @twin
    async def ipython(
        self,
        code: str,
        *,
        timeout: Optional[float] = None,
        action_id: Optional[str] = None,
        on_output: Optional[OnOutput] = None,
    ) -> CellObservation:
        """Runs a cell in the agent's persistent IPython kernel. Errors are in ``content``.

        A cell that reaches the ``timeout``, or 120 seconds without one, is interrupted.
        """
        args = {"code": code, "include_extra": False}
        return await self._act(
            CellObservation,
            "run_ipython",
            args,
            timeout=timeout,
            action_id=action_id,
            on_output=on_output,
        )

    @twin
    async def restart_kernel(self, *, timeout: Optional[float] = None) -> CellObservation:
        """Gives the agent a new IPython kernel: variables are lost, and a running cell ends.

        Needed after a cell that ignores its interrupt: until then, other cells are ``Refused``.
        """
        args = {"code": "", "restart": True, "include_extra": False}
        return await self._act(CellObservation, "run_ipython", args, timeout=timeout)

    # Files.

    @twin
    async def read(self, path: str, *, start: int = 0, end: int = -1) -> ReadObservation:
        """The text of a file, or its lines from ``start`` to before ``end``, counted from 0."""
        return await self._act(ReadObservation, "read", {"path": path, "start": start, "end": end})

    @twin
    async def view(
        self, path: str, *, first_line: Optional[int] = None, last_line: int = -1
    ) -> ReadObservation:
        """A file with numbered lines, counted from 1, or the entries of a directory."""
        lines = None if first_line is None else [first_line, last_line]
        args = given(path=path, impl_source="oh_aci", view_range=lines)
        return await self._act(ReadObservation, "read", args)

    @twin
    async def write(
        self, path: str, content: str, *, start: int = 0, end: int = -1
    ) -> WriteObservation:
        """Writes a file, or replaces these lines, counted as in ``read``, by ``content``.

        If the last line has no line end, one is added.
        """
        args = {"path": path, "content": content, "start": start, "end": end}
        return await self._act(WriteObservation, "write", args)

    @twin
    async def create(self, path: str, text: str) -> EditObservation:
        """Creates a file. Unlike ``write``, it can be undone, and never replaces a file."""
        return await self._edit("create", path, file_text=text)

    @twin
    async def replace(self, path: str, old: str, new: str) -> EditObservation:
        """Replaces a text that must occur exactly once."""
        return await self._edit("str_replace", path, old_str=old, new_str=new)

    @twin
    async def insert(self, path: str, after: int, text: str) -> EditObservation:
        """Inserts lines after a line; 0 inserts before the first."""
        return await self._edit("insert", path, insert_line=after, new_str=text)

    @twin
    async def undo(self, path: str) -> EditObservation:
        """Undoes the latest edit of a file."""
        return await self._edit("undo_edit", path)

    @twin
    async def mkdir(self, path: str) -> Observation:
        """Creates a directory and its missing parents."""
        return await self._act(Observation, "mkdir", {"path": path})

    @twin
    async def rmdir(self, path: str) -> Observation:
        """Removes an empty directory."""
        return await self._act(Observation, "rmdir", {"path": path})

    @twin
    async def rm(self, path: str, *, recursive: bool = False) -> Observation:
        """Removes a file or, with ``recursive``, a whole directory."""
        return await self._act(Observation, "rm", {"path": path, "recursive": recursive})

    # Other actions.

    @twin
    async def browse(self, url: str, *, timeout: Optional[float] = None) -> BrowseObservation:
        """The text of a web page, with its links."""
        return await self._act(BrowseObservation, "browse", {"url": url}, timeout=timeout)

    @twin
    async def execute(
        self,
        action: str,
        args: Mapping[str, Any],
        *,
        timeout: Optional[float] = None,
        action_id: Optional[str] = None,
        on_output: Optional[OnOutput] = None,
    ) -> Observation:
        """Executes an action in the format of PROTOCOL.md, for instance one that a model wrote."""
        return await self._act(
            Observation, action, args, timeout=timeout, action_id=action_id, on_output=on_output
        )

    @twin
    async def cancel(self, action_id: str) -> None:
        """Interrupts a running action. The call that waits for it raises ``BridgeCancelled``."""
        await self._tool(_protocol.CANCEL_ACTION, {"actionId": action_id})

    @twin
    async def close(self) -> Observation:
        """Ends the agent's shell, with all its programs, and its kernel.

        The next action gets new ones.
        """
        return await self._act(Observation, "close", {})

    async def _command(
        self,
        args: Mapping[str, Any],
        *,
        timeout: Optional[float],
        blocking: Optional[bool] = None,
        action_id: Optional[str] = None,
        on_output: Optional[OnOutput] = None,
    ) -> RunObservation:
        # With a timeout, the caller has chosen how long to wait, so silence does not end the wait.
        args = {**args, "blocking": bool(timeout) if blocking is None else blocking}
        return await self._act(
            RunObservation, "run", args, timeout=timeout, action_id=action_id, on_output=on_output
        )

    async def _edit(self, command: str, path: str, **args: Any) -> EditObservation:
        return await self._act(EditObservation, "edit", {"command": command, "path": path, **args})

    async def _act(
        self,
        kind: Type[Kind],
        action: str,
        args: Mapping[str, Any],
        *,
        timeout: Optional[float] = None,
        action_id: Optional[str] = None,
        on_output: Optional[OnOutput] = None,
    ) -> Kind:
        params = given(
            action=action,
            args=dict(args),
            actionId=action_id,
            shell=self.shell,
            timeout=_protocol.optional_milliseconds(timeout),
        )
        if on_output is None:
            result = await self._tool(_protocol.EXECUTE_ACTION, params, timeout)
        else:
            result = await self._stream(params, timeout, on_output)
        observation = observation_of(result)
        if not isinstance(observation, kind):
            raise RequestFailed(
                f"The bridge answered {action} with an observation of the kind "
                f"{observation.kind!r}. Are it and this package of the same version?",
                kind="BadHostResponse",
            )
        return observation

    async def _stream(
        self, params: Mapping[str, Any], timeout: Optional[float], on_output: OnOutput
    ) -> Any:
        output = Output(on_output, log_of(self, self.shell))

        async def on_progress(value: Any) -> None:
            text, start, end = value["text"], value.get("start"), value.get("end")
            if start is None:  # output of a cell or of a fresh shell, which has no log
                on_output(text)
            else:
                await output.piece(text.encode("utf-8", "replace"), start, end)

        params = {**params, "stream": True}
        return await self._follow_tool(_protocol.EXECUTE_ACTION, params, on_progress, timeout)


class Agent(AgentMethods, BlockingConnected):
    """An agent with a shell. Without a ``client``, it opens its own connection.

    ``runtime`` (an id) or ``path`` (a directory that the runtime has open) chooses a runtime if
    there are several. At the end of a ``with`` block, its own connection ends. The shell, its
    programs and its kernel keep running for the next agent with the same ``shell``; ``close`` ends
    them.
    """

    def __init__(
        self,
        shell: str = "agent",
        *,
        client: Optional[Client] = None,
        runtime: Optional[str] = None,
        path: Optional[PathLike] = None,
    ) -> None:
        super().__init__(client, Route(runtime, path))
        self.shell = shell


class AsyncAgent(AgentMethods, AsyncConnected):
    """An agent with a shell, for asyncio: the methods of ``Agent``, to be awaited."""

    def __init__(
        self,
        shell: str = "agent",
        *,
        client: Optional[AsyncClient] = None,
        runtime: Optional[str] = None,
        path: Optional[PathLike] = None,
    ) -> None:
        super().__init__(client, Route(runtime, path))
        self.shell = shell
