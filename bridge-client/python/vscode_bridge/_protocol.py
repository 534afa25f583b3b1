"""The wire: method names, parameters, results, and JSON-RPC messages as text.

No I/O, no clock. The types of all methods are in ``_types``.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

from ._exceptions import BridgeError, RequestRefused, request_failed

CHAT = "vscode/chat"
SHOW_MESSAGE = "vscode/showMessage"
EXECUTE_COMMAND = "vscode/executeCommand"
GET_CHAT_HISTORY = "vscode/getChatHistory"
EXECUTE_ACTION = "action/execute"
CANCEL_ACTION = "action/cancel"

MESSAGE_BYTES = 16 * 1024 * 1024
"""Maximum size of a message. The bridge would close the connection after a larger one, and all
other requests in flight would fail, so it is refused here."""

TIMEOUT_MAX = 600.0
"""Maximum timeout of a request in seconds; the bridge reduces longer ones to this."""

TOOL_TIMEOUT_MAX = 24 * 3600.0
"""Maximum timeout of a tool or an action in seconds."""

Params = Dict[str, Any]

_TOOLS = ("shell/", "file/", "cell/", "page/", "action/")
_LONG = ("shell/run", "shell/wait", "cell/run", EXECUTE_ACTION)
"""Methods that wait for commands and cells, and have their own limits."""

_ids = count(1)


def longest_timeout(method: str) -> float:
    """The maximum timeout of a request in seconds."""
    return TOOL_TIMEOUT_MAX if method.startswith(_TOOLS) else TIMEOUT_MAX


def default_timeout(method: str) -> float:
    """The timeout in seconds of a request that names none."""
    if method in _LONG:
        return TOOL_TIMEOUT_MAX
    if method.startswith(_TOOLS):
        return 120.0
    return 10.0 if method == EXECUTE_COMMAND else 30.0


# Messages to the bridge.


class Request(NamedTuple):
    """A request as text, ready to be sent."""

    id: int
    method: str
    text: str


def new_request(method: str, params: Mapping[str, Any]) -> Request:
    """Prints a request with a new id. Raises if it cannot be sent."""
    request_id = next(_ids)
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    text = to_json(method, message)
    if len(text) > MESSAGE_BYTES:
        raise RequestRefused(
            f"{method}: the request is {len(text)} bytes long; {MESSAGE_BYTES} are allowed. "
            "Send less, or pass the name of a file.",
            kind="OversizedRequest",
        )
    return Request(request_id, method, text)


def to_json(method: str, value: object) -> str:
    """JSON in ASCII: lone surrogates keep their escapes, and NaN is refused."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestRefused(
            f"{method}: the arguments cannot be written as JSON ({error}). Use text, numbers, "
            "True, False, None, lists and dictionaries; NaN and Infinity have no form in JSON.",
            kind="InvalidParams",
        ) from error


def cancel_text(request_id: int) -> str:
    """The notification that cancels a request."""
    return f'{{"jsonrpc":"2.0","method":"$/cancelRequest","params":{{"id":{request_id}}}}}'


# Messages from the bridge.


class Answer(NamedTuple):
    """The end of a request: a result or an error."""

    id: int
    result: Any = None
    error: Optional[BridgeError] = None


class Progress(NamedTuple):
    """A piece of the answer, sent before it."""

    id: int
    value: Any


def read(text: Union[str, bytes]) -> Union[Answer, Progress, None]:
    """Parses an answer or progress for one of our requests; None for any other message."""
    try:
        message = members_of(json.loads(text))
    except (ValueError, RecursionError):
        return None
    if message.get("method") == "$/progress":
        params = members_of(message.get("params"))
        request_id = params.get("id")
        return Progress(request_id, params.get("value")) if isinstance(request_id, int) else None
    request_id = message.get("id")
    if isinstance(request_id, int) and "error" in message:
        return Answer(request_id, error=request_failed(message["error"]))
    if isinstance(request_id, int) and "result" in message:
        return Answer(request_id, result=message["result"])
    return None


# Parameters and results of the methods.


class Conversation:
    """A conversation. Pass the same object to each ``chat``; the first answer sets its id.

    The id is also the key for ``get_chat_history``.
    """

    def __init__(self, id: Optional[str] = None) -> None:
        self.id = id

    def __repr__(self) -> str:
        return f"Conversation(id={self.id!r})"


ConversationLike = Union[str, Conversation, None]


def conversation_id(conversation: ConversationLike) -> Optional[str]:
    """The id of a ``Conversation``, or the id itself."""
    return conversation.id if isinstance(conversation, Conversation) else conversation


def given(**members: Any) -> Params:
    """The members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def milliseconds(timeout: float) -> float:
    """Converts seconds to the milliseconds of the wire."""
    valid = isinstance(timeout, (int, float)) and 0 <= timeout < float("inf")
    if not valid:
        raise RequestRefused(
            f"timeout={timeout!r} is not a number of seconds; use 0 for the method's default.",
            kind="InvalidParams",
        )
    value = timeout * 1000
    return int(value) if value == int(value) else value


def optional_milliseconds(timeout: Optional[float]) -> Optional[float]:
    """Converts seconds to milliseconds; None stays None."""
    return None if timeout is None else milliseconds(timeout)


def chat_params(
    message: str,
    timeout: Optional[float],
    model: Optional[str],
    conversation: ConversationLike,
) -> Params:
    """Parameters of ``vscode/chat``."""
    params = given(message=message, model=model, conversationId=conversation_id(conversation))
    return _with_timeout(params, timeout)


def show_message_params(
    message: str, level: str, buttons: Sequence[str], timeout: Optional[float]
) -> Params:
    """Parameters of ``vscode/showMessage``."""
    params: Params = {"message": message, "level": level}
    if buttons:
        params["buttons"] = list(buttons)
    return _with_timeout(params, timeout)


def execute_command_params(command: str, args: Sequence[Any], timeout: Optional[float]) -> Params:
    """Parameters of ``vscode/executeCommand``."""
    return _with_timeout({"command": command, "args": list(args)}, timeout)


def get_chat_history_params(conversation: str, limit: int) -> Params:
    """Parameters of ``vscode/getChatHistory``."""
    return {"conversationId": conversation, "limit": limit}


def chat_text(result: object, conversation: ConversationLike = None) -> str:
    """The text of a ``vscode/chat`` result. Also sets the id of a ``Conversation``.

    A refusal becomes a sentence in brackets, with the words of the original project.
    """
    members = members_of(result)
    key = members.get("conversationId")
    if isinstance(conversation, Conversation) and isinstance(key, str):
        conversation.id = key
    if members.get("blocked"):
        reason = members.get("blockedReason") or "blocked"
        opened = " and opened Copilot Chat" if members.get("openedChat") else ""
        return f"[Copilot blocked: {reason}{opened}]"
    return str(members.get("response") or "")


def choice(result: object) -> Optional[str]:
    """The pressed button in a ``vscode/showMessage`` result; None if there is none."""
    button = members_of(result).get("choice")
    return button if isinstance(button, str) else None


def history_messages(result: object) -> List[Dict[str, Any]]:
    """The messages of a ``vscode/getChatHistory`` result, oldest first."""
    messages = members_of(result).get("messages")
    return messages if isinstance(messages, list) else []


def members_of(value: object) -> Dict[str, Any]:
    """The members of an object; empty if the value is not an object."""
    return value if isinstance(value, dict) else {}


class StreamedText:
    """Collects the pieces of a streamed chat, and finds out what the final answer adds to them.

    A host may send no pieces at all. The final answer is always complete.
    """

    def __init__(self) -> None:
        self._pieces: List[str] = []

    def piece(self, value: object) -> str:
        """The text in a progress value; empty if there is none."""
        text = members_of(value).get("text")
        if not isinstance(text, str):
            return ""
        self._pieces.append(text)
        return text

    def rest(self, result: object) -> str:
        """The part of the final answer that was not in the pieces, or the sentence of a refusal."""
        whole = chat_text(result)
        if members_of(result).get("blocked"):
            return whole
        seen = "".join(self._pieces)
        return whole[len(seen) :] if whole.startswith(seen) else ""


def _with_timeout(params: Params, timeout: Optional[float]) -> Params:
    if timeout is not None:
        params["timeout"] = milliseconds(timeout)
    return params
