"""Types of ``shell/*``."""

from __future__ import annotations

from typing import Dict, List, Literal, TypedDict, Union


class ShellRef(TypedDict, total=False):
    shell: str


class CreateShellParams(TypedDict, total=False):
    shell: str
    reuse: bool
    cwd: str
    environment: Dict[str, str]
    columns: int
    rows: int


class _NeedsShellInfo(TypedDict):
    shell: str
    state: Literal["starting", "idle", "running", "closed"]
    cwd: str
    pid: int
    columns: int
    rows: int
    restarts: int
    logEnd: int


class ShellInfo(_NeedsShellInfo, total=False):
    command: int


class ListShellsResult(TypedDict):
    shells: List[ShellInfo]


class WaitOptions(TypedDict, total=False):
    quietMs: float
    limitMs: float
    returnOnInput: bool
    stream: bool
    outputBytes: int
    outputLines: int
    colours: bool


class _NeedsRunCommandParams(TypedDict):
    command: str


class RunCommandParams(_NeedsRunCommandParams, WaitOptions, total=False):
    shell: str
    create: bool


_From = TypedDict("_From", {"from": int}, total=False)


class WaitParams(_From, WaitOptions, total=False):
    shell: str
    command: int


class OutputProgress(TypedDict):
    offset: int
    base64: str


class Span(TypedDict):
    start: int
    end: int


class _NeedsCommandOutput(TypedDict):
    text: str
    start: int
    end: int


class CommandOutput(_NeedsCommandOutput, total=False):
    omitted: Span
    lastLines: int
    lost: int


class _NeedsRunningCommand(TypedDict):
    shell: str
    command: int
    state: Literal["running", "waitingForInput"]
    output: CommandOutput
    why: Literal["quiet", "limit", "input"]


class RunningCommand(_NeedsRunningCommand, total=False):
    input: Literal["line", "hidden", "keys"]


class _NeedsFinishedCommand(TypedDict):
    shell: str
    command: int
    state: Literal["finished"]
    output: CommandOutput
    ended: Literal["atPrompt", "shellExited", "shellClosed", "serverGone"]
    cwd: str
    durationMs: float
    user: str
    machine: str


class FinishedCommand(_NeedsFinishedCommand, total=False):
    exitCode: int
    backgroundPid: int
    python: str


CommandState = Union[RunningCommand, FinishedCommand]


class ReadOutputParams(_From, total=False):
    shell: str
    bytes: int
    lines: int
    raw: bool
    colours: bool


class _NeedsReadOutputResult(TypedDict):
    start: int
    end: int
    logEnd: int
    more: bool


class ReadOutputResult(_NeedsReadOutputResult, total=False):
    text: str
    base64: str
    lastLines: int


class _NeedsInputParams(TypedDict):
    text: str


class InputParams(_NeedsInputParams, total=False):
    shell: str
    enter: bool


class _NeedsKeysParams(TypedDict):
    keys: List[str]


class KeysParams(_NeedsKeysParams, total=False):
    shell: str


class _NeedsSignalParams(TypedDict):
    signal: Literal["INT", "TERM", "KILL", "QUIT", "HUP", "CONT", "STOP", "USR1", "USR2"]


class SignalParams(_NeedsSignalParams, total=False):
    shell: str


class _NeedsResizeParams(TypedDict):
    columns: int
    rows: int


class ResizeParams(_NeedsResizeParams, total=False):
    shell: str


class AttachParams(TypedDict, total=False):
    shell: str
    readOnly: bool


class AttachResult(TypedDict):
    command: str
    arguments: List[str]
