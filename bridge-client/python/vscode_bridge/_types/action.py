"""Types of ``action/*``."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict, Union

from .empty import Empty


class _NeedsExecuteActionParams(TypedDict):
    action: str


class ExecuteActionParams(_NeedsExecuteActionParams, total=False):
    args: Dict[str, Any]
    actionId: str
    runtimeId: str
    path: str
    shell: str
    stream: bool
    timeout: float


class CancelActionParams(TypedDict):
    actionId: str


class _NeedsOutputPiece(TypedDict):
    text: str


class OutputPiece(_NeedsOutputPiece, total=False):
    start: int
    end: int


class RunMetadata(TypedDict):
    exit_code: int
    pid: int
    username: Optional[str]
    hostname: Optional[str]
    working_dir: Optional[str]
    py_interpreter_path: Optional[str]
    prefix: str
    suffix: str


class _NeedsRunExtras(TypedDict):
    command: str
    metadata: RunMetadata
    hidden: bool


class RunExtras(_NeedsRunExtras, total=False):
    lost: int


class _NeedsCellExtras(TypedDict):
    code: str
    image_urls: Optional[List[str]]


class CellExtras(_NeedsCellExtras, total=False):
    lost: int


class EditExtras(TypedDict):
    path: str
    prev_exist: bool
    old_content: Optional[str]
    new_content: Optional[str]
    impl_source: str
    diff: str
    _diff_cache: Optional[str]


class PageExtras(TypedDict):
    url: str
    trigger_by_action: str
    screenshot: str
    screenshot_path: Optional[str]
    set_of_marks: str
    error: bool
    goal_image_urls: List[str]
    open_pages_urls: List[str]
    active_page_index: int
    dom_object: Empty
    axtree_object: Empty
    extra_element_properties: Empty
    last_browser_action: str
    last_browser_action_error: str
    focused_element_bid: str
    filter_visible_only: bool


class ReadExtras(TypedDict):
    path: str
    impl_source: str


class WriteExtras(TypedDict):
    path: str


class _NeedsErrorExtras(TypedDict):
    error_id: str


class ErrorExtras(_NeedsErrorExtras, total=False):
    trace: str


Extras = Union[
    RunExtras, CellExtras, EditExtras, PageExtras, ReadExtras, WriteExtras, ErrorExtras, Empty
]


class _NeedsObservationResult(TypedDict):
    message: str
    observation: str
    content: str
    extras: Extras


class ObservationResult(_NeedsObservationResult, total=False):
    cause: str
    success: bool
