"""A request in flight, as a client passes it to the connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Tuple

from . import _protocol
from ._exceptions import BridgeError
from ._protocol import Request

if TYPE_CHECKING:
    import asyncio


class Call:
    """A request in flight, with callbacks for its answer.

    ``on_done(result, error)`` is called exactly once, unless the call is cancelled. Before that,
    ``on_progress`` is called for each piece. Both are called on the event loop.
    """

    __slots__ = ("latest", "limit", "on_done", "on_progress", "renews", "request", "sent", "timer")

    def __init__(
        self,
        request: Request,
        timeout: Optional[float],
        on_done: Callable[[Any, Optional[BridgeError]], None],
        on_progress: Optional[Callable[[Any], None]] = None,
    ) -> None:
        self.request = request
        # Without a timeout, the method's default applies, and each piece of progress restarts it.
        self.renews = not timeout
        self.limit = min(
            timeout or _protocol.default_timeout(request.method),
            _protocol.longest_timeout(request.method),
        )
        self.on_done = on_done
        self.on_progress = on_progress
        self.sent = False
        self.timer: Optional[asyncio.TimerHandle] = None
        self.latest = 0.0


def streamed(
    method: str,
    params: Mapping[str, Any],
    timeout: Optional[float],
    put: Callable[[Tuple[bool, Any]], None],
) -> Call:
    """A call that puts progress and answer into a queue, in order, as ``(is_last, value)``.

    The last value is the result, or the ``BridgeError``.
    """
    return Call(
        _protocol.new_request(method, params),
        timeout,
        on_done=lambda result, error: put((True, error or result)),
        on_progress=lambda value: put((False, value)),
    )
