"""Types of ``file/*``."""

from __future__ import annotations

from typing import List, Literal, TypedDict, Union


class PathParams(TypedDict):
    path: str


class _NeedsReadFileParams(TypedDict):
    path: str


class ReadFileParams(_NeedsReadFileParams, total=False):
    firstLine: int
    lastLine: int
    tail: int
    raw: bool
    limitBytes: int


class _NeedsTextFile(TypedDict):
    kind: Literal["text"]
    text: str
    encoding: str


class TextFile(_NeedsTextFile, total=False):
    firstLine: int
    totalLines: int
    version: str


class _NeedsMediaFile(TypedDict):
    kind: Literal["media"]
    mediaType: str
    base64: str


class MediaFile(_NeedsMediaFile, total=False):
    version: str


class _NeedsBinaryFile(TypedDict):
    kind: Literal["binary"]
    mediaType: str
    size: int


class BinaryFile(_NeedsBinaryFile, total=False):
    version: str


class _NeedsRawFile(TypedDict):
    kind: Literal["raw"]
    base64: str


class RawFile(_NeedsRawFile, total=False):
    version: str


ReadFileResult = Union[TextFile, MediaFile, BinaryFile, RawFile]


class _NeedsWriteFileParams(TypedDict):
    path: str


class WriteFileParams(_NeedsWriteFileParams, total=False):
    text: str
    base64: str
    replace: bool
    mode: int
    ifVersion: str


class WriteFileResult(TypedDict):
    created: bool
    version: str
    ownerKept: bool


class _NeedsEditFileParams(TypedDict):
    path: str
    newText: str


class EditFileParams(_NeedsEditFileParams, total=False):
    oldText: str
    insertAfter: int
    ifVersion: str


class _NeedsEditFileResult(TypedDict):
    line: int
    linesRemoved: int
    linesAdded: int
    diff: str
    ownerKept: bool


class EditFileResult(_NeedsEditFileResult, total=False):
    version: str


class _NeedsUndoParams(TypedDict):
    path: str


class UndoParams(_NeedsUndoParams, total=False):
    force: bool


class ListFilesParams(TypedDict, total=False):
    path: str
    nested: bool
    hidden: bool
    limit: int


FileKind = Literal["file", "directory", "symlink", "pipe", "socket", "device", "other"]


class _NeedsFileEntry(TypedDict):
    path: str
    kind: FileKind


class FileEntry(_NeedsFileEntry, total=False):
    target: FileKind


class _NeedsListFilesResult(TypedDict):
    entries: List[FileEntry]
    hiddenLeftOut: int
    truncated: bool


class ListFilesResult(_NeedsListFilesResult, total=False):
    unreadable: List[str]


class _NeedsGlobParams(TypedDict):
    pattern: str


class GlobParams(_NeedsGlobParams, total=False):
    path: str
    hidden: bool
    ignored: bool
    limit: int


class GlobResult(TypedDict):
    paths: List[str]
    truncated: bool
    unreadable: int


class GrepParams(GlobParams, total=False):
    literal: bool
    ignoreCase: bool
    files: str
    context: int


class GrepLine(TypedDict):
    path: str
    line: int
    text: str
    matches: bool


class GrepResult(TypedDict):
    lines: List[GrepLine]
    truncated: bool
    unreadable: int


class _NeedsStatParams(TypedDict):
    path: str


class StatParams(_NeedsStatParams, total=False):
    follow: bool


class _NeedsStatResult(TypedDict):
    kind: FileKind
    size: int
    mode: int
    user: int
    group: int
    modifiedMs: float


class StatResult(_NeedsStatResult, total=False):
    link: str


class _NeedsHashResult(TypedDict):
    sha256: str
    size: int


class HashResult(_NeedsHashResult, total=False):
    version: str


class _NeedsMakeDirectoryParams(TypedDict):
    path: str


class MakeDirectoryParams(_NeedsMakeDirectoryParams, total=False):
    parents: bool


class _NeedsRemoveParams(TypedDict):
    path: str


class RemoveParams(_NeedsRemoveParams, total=False):
    recursive: bool


_FromTo = TypedDict("_FromTo", {"from": str, "to": str})


class TransferParams(_FromTo, total=False):
    replace: bool


class CopyResult(TypedDict):
    ownerKept: bool
