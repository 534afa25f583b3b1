"""The observations of actions, as values. Public names are in ``agent``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _protocol
from ._exceptions import action_failed
from ._media import Media


@dataclass(frozen=True)
class Observation:
    """The observation of an action. Kinds with further members have subclasses."""

    kind: str
    """``run``, ``run_ipython``, ``read``, ``write``, ``edit``, ``browse`` or ``success``."""
    content: str
    """The text for the agent."""
    raw: Dict[str, Any] = field(repr=False)
    """The whole observation: PROTOCOL.md lists its members."""


@dataclass(frozen=True)
class RunObservation(Observation):
    """The output of a command, and how it ended."""

    command: str
    exit_code: Optional[int]
    """None while it runs, or if it was not started: see ``note``."""
    cwd: Optional[str]
    """The shell's directory afterwards; None while the command runs."""
    note: str
    """How the command ended, or why the wait for it ended and what can be done."""

    @property
    def lost(self) -> int:
        """Number of bytes of output that were lost, because the log is full; see ``note``."""
        return _lost(self)

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self.exit_code is not None

    @property
    def ok(self) -> bool:
        """Whether it has ended with exit code 0."""
        return self.exit_code == 0


@dataclass(frozen=True)
class CellObservation(Observation):
    """Everything that a cell has printed and displayed."""

    code: str
    image_urls: List[str]
    """Its pictures as data URLs."""

    @property
    def images(self) -> List[Media]:
        """Its pictures: PNG, JPEG, GIF and WebP."""
        return [Media.from_url(url) for url in self.image_urls]

    @property
    def ok(self) -> bool:
        """Whether it ran to its end, without exception, timeout or death of the kernel."""
        return self.raw.get("success") is True

    @property
    def lost(self) -> int:
        """Number of bytes that were omitted from very long output; ``content`` says where."""
        return _lost(self)


@dataclass(frozen=True)
class ReadObservation(Observation):
    """The text of a file, or a view of it."""

    path: str


@dataclass(frozen=True)
class WriteObservation(Observation):
    """A file was written."""

    path: str


@dataclass(frozen=True)
class EditObservation(Observation):
    """A file was edited. ``content`` shows the lines around the change."""

    path: str
    diff: str


@dataclass(frozen=True)
class BrowseObservation(Observation):
    """A web page as text."""

    url: str
    error: Optional[str]
    """Why the page could not be shown."""
    screenshot: Optional[str]
    """A picture of the page as a data URL, if the runtime has a browser."""


Members = Dict[str, Any]


def observation_of(result: object) -> Observation:
    """The observation in the result of ``action/execute``. Raises if it is an error."""
    raw = _protocol.members_of(result)
    kind, content = str(raw.get("observation")), str(raw.get("content", ""))
    extras = _protocol.members_of(raw.get("extras"))
    if kind == "error":
        raise action_failed(content, str(extras.get("error_id", "internal")), raw)
    make, more = _BY_KIND.get(kind, (Observation, _of_others))
    return make(kind, content, raw, **more(extras))


def _lost(observation: Observation) -> int:
    return int(_protocol.members_of(observation.raw.get("extras")).get("lost", 0))


def _of_others(extras: Members) -> Members:
    return {}


def _of_run(extras: Members) -> Members:
    metadata = _protocol.members_of(extras.get("metadata"))
    exit_code = metadata.get("exit_code")
    return {
        "command": str(extras.get("command", "")),
        "exit_code": None if exit_code == -1 else exit_code,
        "cwd": metadata.get("working_dir"),
        "note": str(metadata.get("suffix", "")).strip(),
    }


def _of_cell(extras: Members) -> Members:
    return {
        "code": str(extras.get("code", "")),
        "image_urls": list(extras.get("image_urls") or []),
    }


def _of_file(extras: Members) -> Members:
    return {"path": str(extras.get("path", ""))}


def _of_edit(extras: Members) -> Members:
    return {**_of_file(extras), "diff": str(extras.get("diff", ""))}


def _of_page(extras: Members) -> Members:
    reason = str(extras.get("last_browser_action_error") or "the page could not be shown")
    return {
        "url": str(extras.get("url", "")),
        "error": reason if extras.get("error") else None,
        "screenshot": extras.get("screenshot") or None,
    }


_BY_KIND: Dict[str, Tuple[Callable[..., Observation], Callable[[Members], Members]]] = {
    "run": (RunObservation, _of_run),
    "run_ipython": (CellObservation, _of_cell),
    "read": (ReadObservation, _of_file),
    "write": (WriteObservation, _of_file),
    "edit": (EditObservation, _of_edit),
    "browse": (BrowseObservation, _of_page),
}
