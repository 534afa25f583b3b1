"""Files of a runtime's workspace. Public names are in ``tools``."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, TypeVar, Union

from ._exceptions import Conflict
from ._media import Media
from ._protocol import given
from ._twins import Twin, twin

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """One entry of a directory."""

    path: str
    kind: str
    """``file``, ``directory``, ``symlink``, ``pipe``, ``socket``, ``device`` or ``other``."""


@dataclass(frozen=True)
class Match:
    """A line that ``grep`` found, or a line of context."""

    path: str
    line: int
    text: str
    matches: bool
    """False for a line that is only context."""


class Found(List[T]):
    """A list of results that knows whether it is complete."""

    def __init__(self, found: Iterable[T], result: Mapping[str, Any]) -> None:
        super().__init__(found)
        self.truncated = bool(result.get("truncated"))
        """Whether there are more results than the ``limit``."""
        unreadable = result.get("unreadable", 0)
        self.unreadable = unreadable if isinstance(unreadable, int) else len(unreadable)
        """How many files or directories could not be read."""

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.truncated and not self.unreadable


class Text(str):
    """The text of a file, or of some of its lines."""

    version: Optional[str]
    """The version of the whole file, for ``if_version``; None if the file is very large."""
    encoding: str
    """The character encoding of the file, for instance ``UTF-8``."""
    total_lines: Optional[int]
    """The number of lines of the whole file, if all of it was read."""

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Text:
        text = cls(result["text"])
        text.version, text.encoding = result.get("version"), result["encoding"]
        text.total_lines = result.get("totalLines")
        return text


class Bytes(bytes):
    """The bytes of a file."""

    version: Optional[str]
    """The version of the file, for ``if_version``; None if the file is very large."""

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Bytes:
        content = cls(base64.b64decode(result["base64"]))
        content.version = result.get("version")
        return content


@dataclass(frozen=True)
class Written:
    """The result of ``write``."""

    created: bool
    """Whether the file is new."""
    version: str
    """The version of the file now."""
    owner_kept: bool
    """False if the file had another owner or group, and is the runtime's now."""


@dataclass(frozen=True)
class Edited:
    """The result of an edit."""

    line: int
    """The first changed line."""
    diff: str
    version: Optional[str]
    """The version of the file now; None if undoing an edit has removed the file."""
    owner_kept: bool
    """False if the file had another owner or group, and is the runtime's now."""


@dataclass(frozen=True)
class Hashed:
    """The result of ``hash``. All members describe the same bytes."""

    sha256: str
    """64 lower-case hexadecimal digits."""
    size: int
    """How many bytes were hashed."""
    version: Optional[str]
    """The version of the file; None if it is very large, or was changed while it was read."""


@dataclass(frozen=True)
class Copied:
    """The result of ``copy``."""

    owner_kept: bool
    """False if a file that was replaced had another owner or group, and is the runtime's now."""


class FileMethods(Twin):
    """The methods for files."""

    @twin
    async def read(
        self,
        path: str,
        *,
        first_line: Optional[int] = None,
        last_line: Optional[int] = None,
        tail: Optional[int] = None,
        limit_bytes: Optional[int] = None,
    ) -> Text:
        """The text of a file, or some of its lines, counted from 1. Line ends stay unchanged.

        Fails if there are more than ``limit_bytes`` (10 MiB).
        """
        params = given(
            path=path, firstLine=first_line, lastLine=last_line, tail=tail, limitBytes=limit_bytes
        )
        content = await self._file("file/read", params)
        if content.get("kind") != "text":
            raise Conflict(f"{path} is no text: use read_bytes.", data={"reason": "notText"})
        return Text.of(content)

    @twin
    async def read_bytes(self, path: str, *, limit_bytes: Optional[int] = None) -> Bytes:
        """The bytes of a file."""
        params = given(path=path, raw=True, limitBytes=limit_bytes)
        return Bytes.of(await self._file("file/read", params))

    @twin
    async def read_media(self, path: str, *, limit_bytes: Optional[int] = None) -> Media:
        """An image, video, audio or PDF file, with its media type."""
        content = await self._file("file/read", given(path=path, limitBytes=limit_bytes))
        if content.get("kind") != "media":
            raise Conflict(
                f"{path} is no picture or the like: use read.", data={"reason": "noMedia"}
            )
        return Media.from_base64(content["mediaType"], content["base64"], content.get("version"))

    @twin
    async def write(
        self,
        path: str,
        content: Union[str, bytes],
        *,
        replace: bool = True,
        if_version: Optional[str] = None,
    ) -> Written:
        """Writes a whole file atomically. Missing parent directories are created.

        With ``if_version``, raises ``Conflict`` if the file has another version by now.
        """
        params = given(path=path, replace=replace, ifVersion=if_version)
        if isinstance(content, bytes):
            params["base64"] = base64.b64encode(content).decode("ascii")
        else:
            params["text"] = content
        result = await self._file("file/write", params)
        return Written(result["created"], result["version"], result["ownerKept"])

    @twin
    async def create(self, path: str, text: str) -> Edited:
        """Creates a file. Unlike ``write``, it can be undone, and never replaces a file."""
        return _edited(await self._file("file/edit", {"path": path, "newText": text}))

    @twin
    async def replace(
        self, path: str, old: str, new: str, *, if_version: Optional[str] = None
    ) -> Edited:
        """Replaces a text that must occur exactly once.

        With ``if_version``, raises ``Conflict`` if the file has another version by now.
        """
        params = given(path=path, oldText=old, newText=new, ifVersion=if_version)
        return _edited(await self._file("file/edit", params))

    @twin
    async def insert(
        self, path: str, after: int, text: str, *, if_version: Optional[str] = None
    ) -> Edited:
        """Inserts lines after a line; 0 inserts before the first.

        With ``if_version``, raises ``Conflict`` if the file has another version by now.
        """
        params = given(path=path, insertAfter=after, newText=text, ifVersion=if_version)
        return _edited(await self._file("file/edit", params))

    @twin
    async def undo(self, path: str, *, force: bool = False) -> Edited:
        """Undoes the latest edit of a file."""
        return _edited(await self._file("file/undo", {"path": path, "force": force}))

    @twin
    async def list(
        self,
        path: str = ".",
        *,
        nested: bool = False,
        hidden: bool = False,
        limit: Optional[int] = None,
    ) -> Found[Entry]:
        """The entries of a directory, with ``nested`` also of subdirectories; at most 10,000."""
        params = given(path=path, nested=nested, hidden=hidden, limit=limit)
        result = await self._file("file/list", params)
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

        With ``hidden`` also hidden files, with ``ignored`` also those that ``.gitignore`` excludes.
        """
        params = {
            "pattern": pattern,
            "path": path,
            "hidden": hidden,
            "ignored": ignored,
            "limit": limit,
        }
        result = await self._file("file/glob", params)
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
        result = await self._file("file/grep", params)
        lines = (
            Match(line["path"], line["line"], line["text"], line["matches"])
            for line in result["lines"]
        )
        return Found(lines, result)

    @twin
    async def stat(self, path: str, *, follow: bool = True) -> Dict[str, Any]:
        """``kind``, ``size``, ``mode``, ``user``, ``group``, ``modifiedMs``, perhaps ``link``."""
        return await self._file("file/stat", {"path": path, "follow": follow})

    @twin
    async def hash(self, path: str) -> Hashed:
        """The SHA-256 of a file of at most 16 GiB, with its size and version."""
        result = await self._file("file/hash", {"path": path})
        return Hashed(result["sha256"], result["size"], result.get("version"))

    @twin
    async def make_directory(self, path: str) -> None:
        """Creates a directory and its missing parents. It may already exist."""
        await self._file("file/makeDirectory", {"path": path})

    @twin
    async def remove_directory(self, path: str) -> None:
        """Removes an empty directory."""
        await self._file("file/removeDirectory", {"path": path})

    @twin
    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Removes a file or, with ``recursive``, a whole directory."""
        await self._file("file/remove", {"path": path, "recursive": recursive})

    @twin
    async def move(self, source: str, target: str, *, replace: bool = False) -> None:
        """Moves a file or directory."""
        await self._transfer("file/move", source, target, replace)

    @twin
    async def copy(self, source: str, target: str, *, replace: bool = False) -> Copied:
        """Copies a file or directory."""
        result = await self._transfer("file/copy", source, target, replace)
        return Copied(owner_kept=result["ownerKept"])

    async def _file(self, method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
        return await self._tool(method, {**params, "path": self._route.file(params["path"])})

    async def _transfer(
        self, method: str, source: str, target: str, replace: bool
    ) -> Dict[str, Any]:
        source, target = self._route.file(source), self._route.file(target)
        params: Dict[str, Any] = {"from": source, "to": target, "replace": replace}
        if source.startswith("/"):
            params["path"] = source  # chooses the runtime, as the path of other methods does
        return await self._tool(method, params)


def _edited(result: Mapping[str, Any]) -> Edited:
    return Edited(result["line"], result["diff"], result.get("version"), result["ownerKept"])
