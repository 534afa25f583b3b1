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
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Type, Union

from . import _protocol
from ._client import Client
from ._exceptions import RequestFailed
from ._shell import Command, Shell, given

__all__ = ["Command", "Edited", "Entry", "Match", "Sandbox", "Shell"]


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
        params = given(shell=name, cwd=cwd, environment=dict(environment or {}))
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
        params = given(path=path, firstLine=first_line, lastLine=last_line, tail=tail)
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
        params = given(
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


def _edited(result: Mapping[str, Any]) -> Edited:
    return Edited(line=result["line"], diff=result["diff"])
