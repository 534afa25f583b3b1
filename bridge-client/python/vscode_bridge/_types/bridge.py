"""Types of ``bridge/*``, ``runtime/*`` and notifications."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, TypedDict, Union


class _NeedsRegisterParams(TypedDict):
    methods: List[str]


class RegisterParams(_NeedsRegisterParams, total=False):
    runtimeId: str
    title: str
    workspaceFolders: List[str]
    focused: bool
    edge: bool


class RuntimeRef(TypedDict):
    runtimeId: str


class UpdateParams(TypedDict, total=False):
    title: str
    workspaceFolders: List[str]
    methods: List[str]
    focused: bool


class _NeedsRuntimeInfo(TypedDict):
    runtimeId: str
    title: str
    workspaceFolders: List[str]
    methods: List[str]
    focused: bool
    inFlight: int


class RuntimeInfo(_NeedsRuntimeInfo, total=False):
    edge: bool


Right = Literal["chat", "read", "write", "run", "editor"]


class _NeedsHelloParams(TypedDict):
    protocol: int


class HelloParams(_NeedsHelloParams, total=False):
    name: str
    runtimeId: str
    path: str


class _NeedsHelloResult(TypedDict):
    protocol: int
    version: str
    session: str
    role: Literal["client", "host"]


class HelloResult(_NeedsHelloResult, total=False):
    rights: List[Right]


class CreateClientTokenParams(TypedDict):
    role: Literal["client"]
    rights: List[Right]


class CreateHostTokenParams(TypedDict):
    role: Literal["host"]
    runtimeIds: List[str]
    tools: List[str]


CreateTokenParams = Union[CreateClientTokenParams, CreateHostTokenParams]


class CreateTokenResult(TypedDict):
    token: str


class StatusResult(TypedDict):
    version: str
    session: str
    pid: int
    uptime: float
    clients: int
    runtimes: List[RuntimeInfo]
    inFlight: int
    queuedBytes: int
    operations: int
    counters: Dict[str, int]


class _NeedsRequestRecord(TypedDict):
    request: int
    client: int
    method: str
    outcome: str
    waitMs: float
    hostMs: float
    requestBytes: int
    responseBytes: int


class RequestRecord(_NeedsRequestRecord, total=False):
    clientName: str
    runtimeId: str


class _NeedsCancelParams(TypedDict):
    id: Union[int, str]


class CancelParams(_NeedsCancelParams, total=False):
    reason: str


class ProgressParams(TypedDict):
    id: Union[int, str]
    value: Any
