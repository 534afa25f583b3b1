"""Types of ``cell/*`` and ``page/*``."""

from __future__ import annotations

from typing import List, Literal, TypedDict


class _NeedsRunCellParams(TypedDict):
    code: str


class RunCellParams(_NeedsRunCellParams, total=False):
    shell: str
    restart: bool
    limitMs: float
    stream: bool


class Picture(TypedDict):
    mediaType: str
    base64: str


class _NeedsRunCellResult(TypedDict):
    text: str
    ended: Literal["finished", "raised", "timedOut", "kernelDied"]
    cwd: str
    python: str


class RunCellResult(_NeedsRunCellResult, total=False):
    omittedBytes: int
    pictures: List[Picture]
    newKernel: Literal["restarted", "wasStuck"]


class _NeedsBrowseParams(TypedDict):
    url: str


class BrowseParams(_NeedsBrowseParams, total=False):
    limitMs: float


class _NeedsBrowseResult(TypedDict):
    url: str
    text: str


class BrowseResult(_NeedsBrowseResult, total=False):
    pngBase64: str
    error: str
