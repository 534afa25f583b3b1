"""Shells and files of a bridge that was started with ``--sandbox DIR``.

>>> from vscode_bridge.sandbox import Sandbox  # doctest: +SKIP
>>> with Sandbox() as sandbox:  # doctest: +SKIP
...     shell = sandbox.shell()
...     shell.run("cd src && make").exit_code
...     sandbox.replace("src/a.py", "x = 1", "x = 2").diff

Shells stay: directory, variables and functions carry over from one command to the next. A command
that outlives its wait goes on, and can be awaited, fed, read and interrupted. Files are those below
DIR; paths are relative to it. Times are in seconds. For asyncio there is ``AsyncSandbox``.

Everything raises ``BridgeError`` when it does not succeed. ``error.kind`` is for instance
``NotFound``, ``Conflict`` or ``OutsideWorkspace``; ``error.data["reason"]`` says it exactly.
"""

from __future__ import annotations

import base64
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Dict, Generic, Iterable, List, Mapping, Optional, TypeVar, Union

from . import _protocol
from ._exceptions import RequestFailed
from ._media import Media
from ._protocol import given
from ._shell import AsyncShell, Command, OutputLost, Printed, Shell
from ._twins import AsyncOwner, BlockingOwner, Twin, twin

__all__ = [
    "AsyncSandbox",
    "AsyncShell",
    "Command",
    "Copied",
    "Edited",
    "Entry",
    "Found",
    "Match",
    "Media",
    "OutputLost",
    "Printed",
    "Sandbox",
    "Shell",
    "Written",
]

S = TypeVar("S")
T = TypeVar("T")


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


class Found(List[T]):
    """What was found. A list that says whether it is complete."""

    def __init__(self, found: Iterable[T], result: Mapping[str, Any]) -> None:
        super().__init__(found)
        self.truncated = bool(result.get("truncated"))
        """Whether there are more than the ``limit``."""
        unreadable = result.get("unreadable", 0)
        self.unreadable = unreadable if isinstance(unreadable, int) else len(unreadable)
        """How many files or directories could not be read."""

    @property
    def complete(self) -> bool:
        """Whether this is all there is."""
        return not self.truncated and not self.unreadable


@dataclass(frozen=True)
class Written:
    """What ``write`` did."""

    created: bool
    """Whether there was no file before."""
    owner_kept: bool
    """False if the file had another owner or group, and is the bridge's now."""


@dataclass(frozen=True)
class Edited:
    """What an edit did."""

    line: int
    """Where the change begins."""
    diff: str
    owner_kept: bool
    """False if the file had another owner or group, and is the bridge's now."""


@dataclass(frozen=True)
class Copied:
    """What ``copy`` did."""

    owner_kept: bool
    """False if a file that was replaced had another owner or group, and is the bridge's now."""


class SandboxMethods(Twin, Generic[S]):
    """What can be done with a sandbox; ``S`` are its shells."""

    # Shells.

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

        Its terminal has 160 ``columns`` and 48 ``rows`` if nobody says otherwise.
        """
        params = given(
            shell=name, cwd=cwd, environment=dict(environment or {}), columns=columns, rows=rows
        )
        return self.shell(str((await self._sandbox("createShell", params))["shell"]))

    @twin
    async def shells(self) -> List[Dict[str, Any]]:
        """All shells: ``shell``, ``state``, ``command``, ``cwd``, ``pid`` and more of each."""
        return list((await self._sandbox("listShells", {}))["shells"])

    # Files.

    @twin
    async def read(
        self,
        path: str,
        *,
        first_line: Optional[int] = None,
        last_line: Optional[int] = None,
        tail: Optional[int] = None,
        limit_bytes: Optional[int] = None,
    ) -> str:
        """The text of a file, or some of its lines, counted from 1. Line ends are as they are.

        More than ``limit_bytes``, which are 10 MiB unless you say otherwise, are refused.
        """
        params = given(
            path=path, firstLine=first_line, lastLine=last_line, tail=tail, limitBytes=limit_bytes
        )
        content = await self._sandbox("readFile", params)
        if content.get("kind") != "text":
            raise RequestFailed(f"{path} is no text: use read_bytes.", kind="Conflict")
        return str(content["text"])

    @twin
    async def read_bytes(self, path: str, *, limit_bytes: Optional[int] = None) -> bytes:
        """The bytes of a file."""
        params = given(path=path, raw=True, limitBytes=limit_bytes)
        return base64.b64decode((await self._sandbox("readFile", params))["base64"])

    @twin
    async def read_media(self, path: str, *, limit_bytes: Optional[int] = None) -> Media:
        """A picture, a film, a sound or a document, with its media type."""
        content = await self._sandbox("readFile", given(path=path, limitBytes=limit_bytes))
        if content.get("kind") != "media":
            raise RequestFailed(f"{path} is no picture or the like: use read.", kind="Conflict")
        return Media.from_base64(content["mediaType"], content["base64"])

    @twin
    async def write(
        self, path: str, content: Union[str, bytes], *, replace: bool = True
    ) -> Written:
        """Writes a whole file in one step; directories above it are created."""
        params: Dict[str, Any] = {"path": path, "replace": replace}
        if isinstance(content, bytes):
            params["base64"] = base64.b64encode(content).decode("ascii")
        else:
            params["text"] = content
        result = await self._sandbox("writeFile", params)
        return Written(created=result["created"], owner_kept=result["ownerKept"])

    @twin
    async def create(self, path: str, text: str) -> Edited:
        """Creates a file. Unlike ``write`` it can be undone, and refuses to replace."""
        return _edited(await self._sandbox("editFile", {"path": path, "newText": text}))

    @twin
    async def replace(self, path: str, old: str, new: str) -> Edited:
        """Replaces a text that must occur exactly once."""
        params = {"path": path, "oldText": old, "newText": new}
        return _edited(await self._sandbox("editFile", params))

    @twin
    async def insert(self, path: str, after: int, text: str) -> Edited:
        """Inserts lines after a line; 0 is before the first."""
        params = {"path": path, "insertAfter": after, "newText": text}
        return _edited(await self._sandbox("editFile", params))

    @twin
    async def undo(self, path: str, *, force: bool = False) -> Edited:
        """Takes the latest edit of a file back."""
        return _edited(await self._sandbox("undoEdit", {"path": path, "force": force}))

    @twin
    async def list(
        self,
        path: str = ".",
        *,
        nested: bool = False,
        hidden: bool = False,
        limit: Optional[int] = None,
    ) -> Found[Entry]:
        """The entries of a directory, and of those in it if ``nested``; at most 10,000."""
        params = given(path=path, nested=nested, hidden=hidden, limit=limit)
        result = await self._sandbox("listFiles", params)
        entries = (Entry(entry["path"], entry["kind"]) for entry in result["entries"])
        return Found(entries, result)

    @twin
    async def glob(
        self,
        pattern: str,
        path: str = ".",
        *,
        hidden: bool = False,
        ignored: bool = False,
        limit: int = 1000,
    ) -> Found[str]:
        """Files whose path matches, for instance ``src/**/*.py``.

        Also hidden ones, and those that ``.gitignore`` names, if asked for.
        """
        params = {
            "pattern": pattern,
            "path": path,
            "hidden": hidden,
            "ignored": ignored,
            "limit": limit,
        }
        result = await self._sandbox("glob", params)
        return Found(result["paths"], result)

    @twin
    async def grep(
        self,
        pattern: str,
        path: str = ".",
        *,
        literal: bool = False,
        ignore_case: bool = False,
        files: Optional[str] = None,
        context: int = 0,
        hidden: bool = False,
        ignored: bool = False,
        limit: int = 1000,
    ) -> Found[Match]:
        """Lines that match a regular expression, in files whose path matches the glob ``files``."""
        params = given(
            pattern=pattern,
            path=path,
            literal=literal,
            ignoreCase=ignore_case,
            files=files,
            context=context,
            hidden=hidden,
            ignored=ignored,
            limit=limit,
        )
        result = await self._sandbox("grep", params)
        lines = (
            Match(line["path"], line["line"], line["text"], line["matches"])
            for line in result["lines"]
        )
        return Found(lines, result)

    @twin
    async def stat(self, path: str, *, follow: bool = True) -> Dict[str, Any]:
        """``kind``, ``size``, ``mode``, ``user``, ``group``, ``modifiedMs``, perhaps ``link``."""
        return await self._sandbox("stat", {"path": path, "follow": follow})

    @twin
    async def make_directory(self, path: str) -> None:
        """Creates a directory and those above it; one that exists is fine."""
        await self._sandbox("makeDirectory", {"path": path})

    @twin
    async def remove_directory(self, path: str) -> None:
        """Removes an empty directory."""
        await self._sandbox("removeDirectory", {"path": path})

    @twin
    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file or, with ``recursive``, a whole directory."""
        await self._sandbox("remove", {"path": path, "recursive": recursive})

    @twin
    async def move(self, source: str, target: str, *, replace: bool = False) -> None:
        """Moves a file or directory."""
        await self._sandbox("move", {"from": source, "to": target, "replace": replace})

    @twin
    async def copy(self, source: str, target: str, *, replace: bool = False) -> Copied:
        """Copies a file or directory."""
        params = {"from": source, "to": target, "replace": replace}
        return Copied(owner_kept=(await self._sandbox("copy", params))["ownerKept"])

    async def _sandbox(self, method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
        return _protocol.members_of(await self._request(f"sandbox/{method}", params))


class Sandbox(SandboxMethods[Shell], BlockingOwner):
    """The sandbox of a bridge. Without a ``client`` it opens a connection of its own."""

    def shell(self, name: str = "main") -> Shell:
        return Shell(self._client, name)

    def close(self) -> None:
        """Ends the connection, if it is our own. Shells and commands go on."""
        self._leave()


class AsyncSandbox(SandboxMethods[AsyncShell], AsyncOwner):
    """The same for asyncio: the methods of ``Sandbox``, to be awaited, but for ``shell``."""

    def shell(self, name: str = "main") -> AsyncShell:
        return AsyncShell(self._client, name)

    async def close(self) -> None:
        """Ends the connection, if it is our own. Shells and commands go on."""
        await self._leave()


def _edited(result: Mapping[str, Any]) -> Edited:
    return Edited(line=result["line"], diff=result["diff"], owner_kept=result["ownerKept"])
