"""Types of ``vscode/*``."""

from __future__ import annotations

from typing import Any, List, Literal, TypedDict


class _NeedsChatParams(TypedDict):
    message: str


class ChatParams(_NeedsChatParams, total=False):
    timeout: float
    model: str
    conversationId: str


class _NeedsChatResult(TypedDict):
    response: str


class ChatResult(_NeedsChatResult, total=False):
    conversationId: str
    blocked: bool
    blockedReason: str
    openedChat: bool


class TextProgress(TypedDict):
    text: str


class _NeedsShowMessageParams(TypedDict):
    message: str


class ShowMessageParams(_NeedsShowMessageParams, total=False):
    level: Literal["info", "warning", "error"]
    buttons: List[str]
    timeout: float


class ShowMessageResult(TypedDict, total=False):
    choice: str


class _NeedsExecuteCommandParams(TypedDict):
    command: str


class ExecuteCommandParams(_NeedsExecuteCommandParams, total=False):
    args: List[Any]
    timeout: float


class ExecuteCommandResult(TypedDict, total=False):
    result: Any


class _NeedsGetChatHistoryParams(TypedDict):
    conversationId: str


class GetChatHistoryParams(_NeedsGetChatHistoryParams, total=False):
    limit: int


class ChatMessage(TypedDict):
    role: Literal["user", "assistant"]
    content: str
    timestamp: int


class GetChatHistoryResult(TypedDict):
    messages: List[ChatMessage]
