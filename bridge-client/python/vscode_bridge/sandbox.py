"""Shells and files of a bridge that was started with ``--sandbox DIR``.

>>> from vscode_bridge.sandbox import Sandbox  # doctest: +SKIP
>>> with Sandbox() as sandbox:  # doctest: +SKIP
...     shell = sandbox.shell()
...     shell.run("cd src && make").exit_code
...     sandbox.replace("src/a.py", "x = 1", "x = 2").diff

Shells stay: directory, variables and functions carry over from one command to the next. A command
that outlives its wait goes on, and can be awaited, fed, read and interrupted. Files are those below
DIR; paths are relative to it. Times are in seconds.

Everything raises ``BridgeError`` when it does not succeed. ``error.kind`` is for instance
``NotFound``, ``Conflict`` or ``OutsideWorkspace``; ``error.data["reason"]`` says it exactly.
"""

from __future__ import annotations

import base64
import codecs
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, Union

from . import _protocol
from ._call import Call
from ._client import Client
from ._exceptions import BridgeError, RequestFailed

__all__ = ["Command", "Edited", "Entry", "Match", "Sandbox", "Shell"]

READ_BYTES = 1 << 20
"""Output that is read at once."""


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


@dataclass(frozen=True)
class Entry:
    """One entry of a directory."""

    path: str
    kind: str
    """``file``, ``directory``, ``symlink``, ``pipe``, ``socket``, ``device`` or ``other``."""


@dataclass(frozen=True)
class Match:
    """A line that ``grep`` found, or one beside it."""

    path: str
    line: int
    text: str
    matches: bool
    """False for a line that is only context."""


@dataclass(frozen=True)
class Edited:
    """What an edit did."""

    line: int
    """Where the change begins."""
    diff: str


class Sandbox:
    """The sandbox of a bridge. Without a ``client`` it opens a connection of its own."""

    def __init__(self, client: Optional[Client] = None) -> None:
        self._client = client or Client()
        self._owns_client = client is None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection, if it is our own. Shells and commands go on."""
        if self._owns_client:
            self._client.close()

    # Shells.

    def shell(self, name: str = "main") -> Shell:
        """A shell by its name. It is started by its first ``run`` if it does not exist."""
        return Shell(self._client, name)

    def create_shell(
        self,
        name: Optional[str] = None,
        *,
        cwd: Optional[str] = None,
        environment: Optional[Mapping[str, str]] = None,
    ) -> Shell:
        """Starts a shell, under a drawn name if none is given."""
        params = _given(shell=name, cwd=cwd, environment=dict(environment or {}))
        return Shell(self._client, str(self._request("createShell", params)["shell"]))

    def shells(self) -> List[Dict[str, Any]]:
        """All shells: ``shell``, ``state``, ``command``, ``cwd``, ``pid`` and more of each."""
        return list(self._request("listShells", {})["shells"])

    # Files.

    def read(
        self,
        path: str,
        *,
        first_line: Optional[int] = None,
        last_line: Optional[int] = None,
        tail: Optional[int] = None,
    ) -> str:
        """The text of a file, or some of its lines, counted from 1. Line ends are as they are."""
        params = _given(path=path, firstLine=first_line, lastLine=last_line, tail=tail)
        content = self._request("readFile", params)
        if content.get("kind") != "text":
            raise RequestFailed(f"{path} is no text: use read_bytes.", kind="Conflict")
        return str(content["text"])

    def read_bytes(self, path: str) -> bytes:
        """The bytes of a file."""
        content = self._request("readFile", {"path": path, "raw": True})
        return base64.b64decode(content["base64"])

    def write(self, path: str, content: Union[str, bytes], *, replace: bool = True) -> None:
        """Writes a whole file in one step; directories above it are created."""
        params: Dict[str, Any] = {"path": path, "replace": replace}
        if isinstance(content, bytes):
            params["base64"] = base64.b64encode(content).decode("ascii")
        else:
            params["text"] = content
        self._request("writeFile", params)

    def create(self, path: str, text: str) -> Edited:
        """Creates a file. Unlike ``write`` it can be undone, and refuses to replace."""
        return _edited(self._request("editFile", {"path": path, "newText": text}))

    def replace(self, path: str, old: str, new: str) -> Edited:
        """Replaces a text that must occur exactly once."""
        params = {"path": path, "oldText": old, "newText": new}
        return _edited(self._request("editFile", params))

    def insert(self, path: str, after: int, text: str) -> Edited:
        """Inserts lines after a line; 0 is before the first."""
        params = {"path": path, "insertAfter": after, "newText": text}
        return _edited(self._request("editFile", params))

    def undo(self, path: str, *, force: bool = False) -> Edited:
        """Takes the latest edit of a file back."""
        return _edited(self._request("undoEdit", {"path": path, "force": force}))

    def list(self, path: str = ".", *, nested: bool = False, hidden: bool = False) -> List[Entry]:
        """The entries of a directory, and of those in it if ``nested``."""
        params = {"path": path, "nested": nested, "hidden": hidden}
        entries = self._request("listFiles", params)["entries"]
        return [Entry(entry["path"], entry["kind"]) for entry in entries]

    def glob(self, pattern: str, path: str = ".", *, limit: int = 1000) -> List[str]:
        """Files whose path matches, for instance ``src/**/*.py``."""
        params = {"pattern": pattern, "path": path, "limit": limit}
        return list(self._request("glob", params)["paths"])

    def grep(
        self,
        pattern: str,
        path: str = ".",
        *,
        literal: bool = False,
        ignore_case: bool = False,
        files: Optional[str] = None,
        context: int = 0,
        limit: int = 1000,
    ) -> List[Match]:
        """Lines that match a regular expression, in files whose path matches the glob ``files``."""
        params = _given(
            pattern=pattern,
            path=path,
            literal=literal,
            ignoreCase=ignore_case,
            files=files,
            context=context,
            limit=limit,
        )
        lines = self._request("grep", params)["lines"]
        return [Match(line["path"], line["line"], line["text"], line["matches"]) for line in lines]

    def stat(self, path: str, *, follow: bool = True) -> Dict[str, Any]:
        """``kind``, ``size``, ``mode``, ``user``, ``group``, ``modifiedMs``, perhaps ``link``."""
        return self._request("stat", {"path": path, "follow": follow})

    def make_directory(self, path: str) -> None:
        """Creates a directory and those above it; one that exists is fine."""
        self._request("makeDirectory", {"path": path})

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file or, with ``recursive``, a whole directory."""
        self._request("remove", {"path": path, "recursive": recursive})

    def move(self, source: str, target: str, *, replace: bool = False) -> None:
        """Moves a file or directory."""
        self._request("move", {"from": source, "to": target, "replace": replace})

    def copy(self, source: str, target: str, *, replace: bool = False) -> None:
        """Copies a file or directory."""
        self._request("copy", {"from": source, "to": target, "replace": replace})

    def _request(self, method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
        return _protocol.members_of(self._client.request(f"sandbox/{method}", params))


class Shell:
    """A shell that stays. Objects of the same name speak to the same one."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client

    def __repr__(self) -> str:
        return f"Shell({self.name!r})"

    def run(
        self,
        command: str,
        *,
        limit: Optional[float] = None,
        quiet: Optional[float] = None,
        return_on_input: bool = False,
        on_output: Optional[Callable[[str], None]] = None,
    ) -> Command:
        """Runs a text of any number of lines and waits for its end.

        The wait also ends after ``limit``, when nothing was printed for ``quiet``, or, if asked to,
        when the command seems to wait for input; and by Ctrl-C. The command goes on then.
        ``on_output`` is called with the output as it comes, with everything that a terminal gets.
        """
        params = _waiting(limit, quiet, return_on_input)
        params.update(shell=self.name, command=command, create=True)
        return self._follow("sandbox/runCommand", params, None, on_output)

    def wait(
        self,
        *,
        limit: Optional[float] = None,
        quiet: Optional[float] = None,
        return_on_input: bool = False,
        start: Optional[int] = None,
        on_output: Optional[Callable[[str], None]] = None,
    ) -> Command:
        """Waits for the latest command, as ``run`` does. Its output comes from ``start`` on."""
        params = _waiting(limit, quiet, return_on_input)
        params.update(_given(shell=self.name, **{"from": start}))
        return self._follow("sandbox/wait", params, start, on_output)

    def output(self, start: Optional[int] = None, *, size: Optional[int] = None) -> str:
        """What the latest command printed, or the shell's log from an offset on, as shown."""
        params = _given(bytes=size, **{"from": start})
        return str(self._request("readOutput", params)["text"])

    def output_bytes(self, start: int, size: int) -> bytes:
        """Bytes of the log. Fewer come if there are fewer, or more than can be read at once."""
        params = {"from": start, "bytes": size, "raw": True}
        return base64.b64decode(self._request("readOutput", params)["base64"])

    def type(self, text: str, *, enter: bool = True) -> None:
        """Types a text, and Enter."""
        self._request("sendInput", {"text": text, "enter": enter})

    def press(self, *keys: str) -> None:
        """Presses keys: ``C-c``, ``C-d``, ``UP``, ``ENTER``, ``TAB``, ``ESC``, ``F1`` and so on."""
        self._request("sendKeys", {"keys": list(keys)})

    def interrupt(self) -> None:
        """Presses Ctrl-C."""
        self.press("C-c")

    def signal(self, name: str) -> None:
        """Signals the programs in the foreground: ``INT``, ``TERM``, ``KILL`` and so on."""
        self._request("signal", {"signal": name})

    def resize(self, columns: int, rows: int) -> None:
        """Changes the size of the terminal."""
        self._request("resize", {"columns": columns, "rows": rows})

    def attach_command(self, *, read_only: bool = False) -> str:
        """What a person runs to watch the shell, or to type along."""
        return str(self._request("attachCommand", {"readOnly": read_only})["command"])

    def close(self) -> None:
        """Ends the shell with all its programs. Its log is gone."""
        self._request("closeShell", {})

    def _request(self, method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
        params = {"shell": self.name, **params}
        return _protocol.members_of(self._client.request(f"sandbox/{method}", params))

    def _follow(
        self,
        method: str,
        params: Dict[str, Any],
        start: Optional[int],
        on_output: Optional[Callable[[str], None]],
    ) -> Command:
        if on_output is None:
            return _command(self._client.request(method, params))
        stream = _Stream(self, start, on_output)
        return stream.run(self._client, method, {**params, "stream": True})


class _Stream:
    """Hands output on as it comes, in the thread that waits.

    The bridge drops pieces for a reader that is slow. Offsets show what is missing, and it is read
    from the log.
    """

    def __init__(
        self, shell: Shell, start: Optional[int], on_output: Callable[[str], None]
    ) -> None:
        self._shell = shell
        self._next = start
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def run(self, client: Client, method: str, params: Mapping[str, Any]) -> Command:
        pieces: SimpleQueue[Tuple[bool, Any]] = SimpleQueue()
        call = Call(
            _protocol.new_request(method, params),
            None,
            on_done=lambda result, error: pieces.put((True, error or result)),
            on_progress=lambda value: pieces.put((False, value)),
        )
        client._start(call)
        try:
            while True:
                last, value = pieces.get()
                if last:
                    return self._finish(value)
                self._piece(_protocol.members_of(value))
        except BaseException:
            client._cancel(call)
            raise

    def _piece(self, value: Mapping[str, Any]) -> None:
        offset, data = int(value["offset"]), base64.b64decode(value["base64"])
        self._fill(offset)
        self._show(data)
        self._next = offset + len(data)

    def _finish(self, value: Any) -> Command:
        if isinstance(value, BridgeError):
            raise value
        command = _command(value)
        if command.details.get("ended") in ("atPrompt", "shellExited"):
            self._next = command.start if self._next is None else self._next
            self._fill(command.end)
        self._show(b"", final=True)
        return command

    def _fill(self, offset: int) -> None:
        while self._next is not None and self._next < offset:
            data = self._shell.output_bytes(self._next, min(READ_BYTES, offset - self._next))
            if not data:
                return
            self._show(data)
            self._next += len(data)

    def _show(self, data: bytes, final: bool = False) -> None:
        text = self._decoder.decode(data, final)
        if text:
            self._on_output(text)


def _waiting(
    limit: Optional[float], quiet: Optional[float], return_on_input: bool
) -> Dict[str, Any]:
    return _given(
        limitMs=None if limit is None else _protocol.milliseconds(limit),
        quietMs=None if quiet is None else _protocol.milliseconds(quiet),
        returnOnInput=return_on_input,
    )


def _command(result: object) -> Command:
    details = _protocol.members_of(result)
    output = _protocol.members_of(details.get("output"))
    duration = details.get("durationMs")
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
        details=details,
    )


def _edited(result: Mapping[str, Any]) -> Edited:
    return Edited(line=result["line"], diff=result["diff"])


def _given(**members: Any) -> Dict[str, Any]:
    """Members that are not None."""
    return {name: value for name, value in members.items() if value is not None}
