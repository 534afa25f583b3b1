"""The exceptions.

Code written for the original module catches ``RuntimeError``, so all exceptions are derived from
it::

    RuntimeError
    └── BridgeError
        ├── BridgeUnavailable   no bridge was found, it cannot be reached, or it refuses the token
        ├── ConnectionLost      the connection broke before the answer came
        ├── HostUnavailable     the bridge is there, but no editor is attached
        ├── HostGone            the editor left while it worked on the request
        ├── BridgeTimeout       no answer in time
        ├── BridgeCancelled     the request was cancelled
        ├── BridgeBusy          too many requests are in flight; wait and try again
        ├── RequestRefused      not allowed, blocked by the person, or not a valid request
        │   └── Conflict        it exists, is busy, or has changed since it was read
        └── RequestFailed       the editor or the tool reports an error
            └── ActionError     an agent's action failed; all of these are in vscode_bridge.agent
                ├── NotFound            no such file or directory
                ├── OutsideWorkspace    the path leads out of the workspace
                ├── PermissionDenied    the operating system does not allow it
                ├── Invalid             the arguments make no sense, or do not fit the file
                ├── Refused             a rule of the sandbox forbids it
                └── Unavailable         something that it needs is missing, for instance a kernel

After ``ConnectionLost``, ``HostGone`` and ``BridgeTimeout``, it is unknown whether the request was
carried out. Requests are never repeated automatically: only the caller knows whether that is safe.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Type


class BridgeError(RuntimeError):
    """A request through the bridge did not succeed."""

    code: Optional[int]
    """The error code on the wire, or None if the error was detected in this process."""

    kind: str
    """A name that programs can compare, for instance ``"Timeout"``."""

    data: Dict[str, Any]
    """Further facts from ``data`` of the error on the wire."""

    def __init__(
        self,
        message: str,
        *,
        code: Optional[int] = None,
        kind: Optional[str] = None,
        data: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.kind = kind or type(self).__name__
        self.data = dict(data or {})

    @property
    def retryable(self) -> bool:
        """Whether a retry may succeed, and cannot do the work twice."""
        return self.data.get("retryable") is True


class BridgeUnavailable(BridgeError):
    """There is no bridge. Start the program with ``bridge-daemon run -- …`` or from VS Code."""


class ConnectionLost(BridgeError):
    """The connection broke before the answer came. The request may have been carried out."""


class HostUnavailable(BridgeError):
    """No editor is attached. Open the folder in VS Code, or run with a terminal host."""


class HostGone(BridgeError):
    """The editor left before it answered. The request may have been carried out."""


class BridgeTimeout(BridgeError):
    """No answer in time. Allow more with ``timeout=``; the request may have been carried out."""


class BridgeCancelled(BridgeError):
    """The request was cancelled, by the caller or because its client was closed."""


class BridgeBusy(BridgeError):
    """Too many requests are in flight. Wait ``data["retryAfterMs"]`` milliseconds, then retry."""


class RequestRefused(BridgeError):
    """The request is not allowed or not valid. Repeating it will not help; change it."""


class Conflict(RequestRefused):
    """The file or shell exists, is busy, or has changed since it was read. Nothing was done.

    ``data["reason"]`` says which. If a file has changed, read it again and decide again.
    """


class RequestFailed(BridgeError):
    """The editor or the tool reports an error; the message is its own."""


class ActionError(RequestFailed):
    """An action failed, and the message is what the agent should read."""

    error_id: str
    """Its class on the wire, for instance ``"not_found"``. ``"internal"`` has no subclass here."""

    raw: Dict[str, Any]
    """The whole observation."""

    def __init__(self, message: str, error_id: str, raw: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.error_id = error_id
        self.raw = dict(raw)


class NotFound(ActionError):
    """There is no such file or directory."""


class OutsideWorkspace(ActionError):
    """The path leads out of the workspace, perhaps by a link. Use one inside of it."""


class PermissionDenied(ActionError):
    """The operating system does not allow it."""


class Invalid(ActionError):
    """The arguments make no sense, or do not fit the file. The message says which."""


class Refused(ActionError):
    """A rule of the sandbox forbids it."""


class Unavailable(ActionError):
    """Something that the action needs is missing, for instance a Python with ipykernel."""


# Tracebacks show them under the name by which they are imported.
for _exception in (BridgeError, Conflict, *BridgeError.__subclasses__()):
    _exception.__module__ = "vscode_bridge"
for _action_error in (ActionError, *ActionError.__subclasses__()):
    _action_error.__module__ = "vscode_bridge.agent"

_BY_CODE: Dict[int, "tuple[str, Type[BridgeError]]"] = {
    -32700: ("ParseError", RequestRefused),
    -32600: ("InvalidRequest", RequestRefused),
    -32601: ("MethodNotFound", RequestRefused),
    -32602: ("InvalidParams", RequestRefused),
    -32603: ("InternalError", RequestFailed),
    -32005: ("BatchNotSupported", RequestRefused),
    -32007: ("OversizedRequest", RequestRefused),
    -32008: ("OversizedResponse", RequestFailed),
    -32009: ("Overloaded", BridgeBusy),
    -32000: ("CommandFailed", RequestFailed),
    -32050: ("HostUnavailable", HostUnavailable),
    -32051: ("HostGone", HostGone),
    -32052: ("Timeout", BridgeTimeout),
    -32053: ("BadHostResponse", RequestFailed),
    -32054: ("NotAllowed", RequestRefused),
    -32055: ("BlockedByUser", RequestRefused),
    -32056: ("ShuttingDown", BridgeUnavailable),
    -32057: ("VersionMismatch", BridgeUnavailable),
    -32059: ("AmbiguousRuntime", RequestRefused),
    -32060: ("Forbidden", RequestRefused),
    -32061: ("WrongRole", RequestRefused),
    -32062: ("NotFound", RequestRefused),
    -32063: ("Conflict", Conflict),
    -32064: ("OutsideWorkspace", RequestRefused),
    -32065: ("NoSpace", RequestFailed),
    -32800: ("RequestCancelled", BridgeCancelled),
}


def request_failed(error: object) -> BridgeError:
    """The exception for an error object of the wire; ``PROTOCOL.md`` section 9 is the table.

    The words "VSCode request failed" are those of the original project; programs look for them.
    """
    if not isinstance(error, dict):
        return RequestFailed(f"VSCode request failed: {error}")
    code = error.get("code")
    code = code if isinstance(code, int) else None
    data = error.get("data")
    data = data if isinstance(data, dict) else {}
    name, exception = _BY_CODE.get(code or 0, ("RequestFailed", RequestFailed))
    kind = data.get("kind")
    return exception(
        f"VSCode request failed: {error.get('message') or 'no reason was given'}",
        code=code,
        kind=kind if isinstance(kind, str) else name,
        data=data,
    )


_BY_ERROR_ID: Dict[str, Type[ActionError]] = {
    "not_found": NotFound,
    "outside_workspace": OutsideWorkspace,
    "permission": PermissionDenied,
    "invalid": Invalid,
    "refused": Refused,
    "unavailable": Unavailable,
}


def action_failed(message: str, error_id: str, raw: Mapping[str, Any]) -> ActionError:
    """The exception for an observation of the kind ``error``; ``PROTOCOL.md`` section 14."""
    return _BY_ERROR_ID.get(error_id, ActionError)(message, error_id, raw)
