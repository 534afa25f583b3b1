"""One WebSocket to the bridge, shared by all requests of a client.

A ``Connection`` lives on one asyncio event loop, and all of its methods are called there. The
blocking client runs such a loop in a background thread; the asyncio client uses the caller's. This
is the only place that uses WebSocket.

The connection opens with the first request, and again with the first request after it was lost.
Requests have ids, so any number may be in flight, and answers find their request by id. Requests
that were sent when the connection broke end with ``ConnectionLost``, because they may have been
carried out. Requests that still waited to be sent go over the next connection.

Between requests nothing runs: no polling and no timers.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from contextlib import suppress
from copy import copy
from typing import Any, Callable, Deque, Dict, Optional, Union

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.protocol import State

from . import _protocol
from ._call import Call
from ._endpoint import Endpoint
from ._exceptions import (
    BridgeBusy,
    BridgeCancelled,
    BridgeError,
    BridgeTimeout,
    BridgeUnavailable,
    ConnectionLost,
)
from ._protocol import Answer, Progress

OPEN_TIMEOUT = 5.0
"""Seconds for one attempt to connect."""

RECONNECT_WAIT = 5.0
"""Seconds in which a lost bridge may come back. The first connection gets only one attempt: the
bridge was started before this program, so waiting would only hide a mistake."""

RECONNECT_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.5)
"""Seconds between attempts. The last value repeats."""

GRACE = 1.0
"""Seconds that a request waits longer than the bridge, so that the error of the bridge, which knows
the reason, arrives first."""

# WebSocket libraries log request headers, and ours contain the token. This logger is in no
# hierarchy and passes nothing on, whatever the program configures.
_silent = logging.Logger("vscode_bridge.websocket", level=logging.CRITICAL + 1)


class Connection:
    """One connection at a time to the bridge, with all requests of a client."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, find_endpoint: Callable[[], Endpoint]
    ) -> None:
        self._loop = loop
        self._find_endpoint = find_endpoint
        # Requests.
        self._calls: Dict[int, Call] = {}
        self._outbox: Deque[Union[Call, str]] = deque()
        # The task of the connection, from the first request until the connection is lost.
        self._task: Optional[asyncio.Task[None]] = None
        self._more: Optional[asyncio.Event] = None
        self._websocket: Optional[ClientConnection] = None
        self._was_open = False
        self._last_failure: Optional[BridgeError] = None
        self._ending = False
        self.socket: Optional[socket.socket] = None
        """The open socket. A forked child closes its copy of it."""

    def start(self, call: Call) -> None:
        """Sends a request. Connects first if necessary."""
        if self._ending:
            call.on_done(None, BridgeCancelled("The client was closed; make a new one."))
            return
        self._calls[call.request.id] = call
        longest = _protocol.longest_timeout(call.request.method)
        call.latest = self._loop.time() + longest + GRACE
        self._set_timer(call)
        self._send(call)

    def cancel(self, call: Call) -> None:
        """Forgets a call and cancels it at the bridge. Its ``on_done`` will not be called."""
        if self._forget(call) and call.sent:
            self._send(_protocol.cancel_text(call.request.id))

    async def close(self, limit: float) -> None:
        """Ends the connection within ``limit`` seconds. Requests that still wait fail."""
        calls = list(self._calls.values())
        await self.hang_up(limit)
        for call in calls:
            call.on_done(None, BridgeCancelled("The client was closed before the answer came."))

    async def hang_up(self, limit: float) -> None:
        """Ends the connection within ``limit`` seconds and forgets the calls.

        For the end of the interpreter: then only daemon threads can be waiting, and waking them
        would print tracebacks.
        """
        self._ending = True
        for call in list(self._calls.values()):
            self._forget(call)
        if self._websocket is not None:
            with suppress(asyncio.TimeoutError, OSError):  # then `_converse` cuts the connection
                await asyncio.wait_for(self._websocket.close(), limit)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # Sending.

    def _send(self, item: Union[Call, str]) -> None:
        self._outbox.append(item)
        if self._task is None:
            self._task = self._loop.create_task(self._serve())
        elif self._more is not None:
            self._more.set()

    async def _write(self, websocket: ClientConnection, more: asyncio.Event) -> None:
        while True:
            while self._outbox:
                if websocket.state is not State.OPEN:
                    return  # the remaining requests go over the next connection
                item = self._outbox.popleft()
                if isinstance(item, Call):
                    if item.request.id not in self._calls:
                        continue  # cancelled or timed out before it was sent
                    item.sent = True
                    text = item.request.text
                else:
                    text = item
                await websocket.send(text)
            more.clear()
            await more.wait()

    # The life of a connection.

    async def _serve(self) -> None:
        try:
            while self._outbox:
                try:
                    websocket = await self._open()
                except BridgeError as error:
                    self._fail_unsent(error)
                else:
                    await self._converse(websocket)
        finally:
            self._task = None

    async def _converse(self, websocket: ClientConnection) -> None:
        self._websocket, self._was_open = websocket, True
        self._more = more = asyncio.Event()
        writer = self._loop.create_task(self._write(websocket, more))
        try:
            async for text in websocket:
                self._receive(text)
        except ConnectionClosed:
            pass  # `_lost` reports the reason, from the close code of the connection
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            websocket.transport.abort()
            self._more = self._websocket = self.socket = None
            self._lost(websocket)

    async def _open(self) -> ClientConnection:
        give_up = self._loop.time() + (RECONNECT_WAIT if self._was_open else 0.0)
        pauses = iter(RECONNECT_PAUSES)
        while True:
            try:
                return await self._connect_once(self._find_endpoint())
            except BridgeError as error:
                self._last_failure = error
                pause = next(pauses, RECONNECT_PAUSES[-1])
                too_late = self._loop.time() + pause > give_up
                if too_late or not error.retryable or not self._calls:
                    raise
                await asyncio.sleep(pause)

    async def _connect_once(self, endpoint: Endpoint) -> ClientConnection:
        path = endpoint.unix_path
        address: Any = path if path is not None else endpoint.host_and_port()
        if path is not None:
            family, uri = socket.AF_UNIX, "ws://localhost/"
        else:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            uri = endpoint.addr
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            await asyncio.wait_for(self._loop.sock_connect(sock, address), OPEN_TIMEOUT)
            websocket = await connect(
                uri,
                sock=sock,
                additional_headers={
                    "Authorization": f"Bearer {endpoint.token}",
                    "X-Run-Bridge-Session": endpoint.session,
                },
                compression=None,
                proxy=None,
                # No pings: the bridge sends them, and a local socket reports a dead peer itself.
                ping_interval=None,
                open_timeout=OPEN_TIMEOUT,
                max_size=_protocol.MESSAGE_BYTES + 65536,
                logger=_silent,
            )
        except BaseException as error:
            sock.close()
            reason = _why_not(endpoint, error)
            if reason is None:
                raise
            raise reason from None
        self.socket = sock
        return websocket

    def _lost(self, websocket: ClientConnection) -> None:
        # Cancels that were not sent are no longer needed: their requests ended with the connection.
        self._outbox = deque(item for item in self._outbox if isinstance(item, Call))
        code = websocket.close_code
        why = f"close code {code}: {websocket.close_reason or 'no reason given'}"
        for call in [call for call in self._calls.values() if call.sent]:
            self._end(
                call,
                error=ConnectionLost(
                    f"The connection to the bridge was lost ({why}) before {call.request.method} "
                    "was answered. It may have been carried out: check before you repeat it.",
                    data={"closeCode": code, "mayHaveExecuted": True},
                ),
            )

    def _fail_unsent(self, error: BridgeError) -> None:
        unsent, self._outbox = self._outbox, deque()
        for item in unsent:
            if isinstance(item, Call):
                self._end(item, error=copy(error))  # each caller raises its own copy

    # Answers and deadlines.

    def _receive(self, text: Union[str, bytes]) -> None:
        message = _protocol.read(text)
        call = self._calls.get(message.id) if message is not None else None
        if call is None:
            return  # not for this client, or the answer to a cancelled request
        if isinstance(message, Answer):
            self._end(call, message.result, message.error)
        elif isinstance(message, Progress):
            if call.renews:
                self._set_timer(call)
            if call.on_progress is not None:
                call.on_progress(message.value)

    def _end(self, call: Call, result: Any = None, error: Optional[BridgeError] = None) -> None:
        if self._forget(call):
            call.on_done(result, error)

    def _forget(self, call: Call) -> bool:
        if self._calls.pop(call.request.id, None) is None:
            return False
        if call.timer is not None:
            call.timer.cancel()
        return True

    def _set_timer(self, call: Call) -> None:
        if call.timer is not None:
            call.timer.cancel()
        when = min(self._loop.time() + call.limit + GRACE, call.latest)
        call.timer = self._loop.call_at(when, self._too_late, call)

    def _too_late(self, call: Call) -> None:
        method = call.request.method
        if call.sent:
            error: BridgeError = BridgeTimeout(
                f"Request timeout after {call.limit:g}s: the bridge did not answer {method}. It "
                "may have been carried out; allow more time with timeout=.",
                kind="Timeout",
                data={"mayHaveExecuted": True},
            )
        else:
            error = BridgeTimeout(
                f"Request timeout after {call.limit:g}s: {method} could not be sent. "
                f"{self._last_failure or 'The bridge does not take more requests now.'}",
                kind="Timeout",
                data={"mayHaveExecuted": False},
            )
        self.cancel(call)
        call.on_done(None, error)


_RESTART = "Start the program again with `bridge-daemon run -- ...` or from VS Code."


def _why_not(endpoint: Endpoint, error: BaseException) -> Optional[BridgeError]:
    """The error for a failed attempt to connect; None for an exception of another kind."""
    where = f"The bridge at {endpoint.addr}"
    if not isinstance(error, Exception):
        return None
    if isinstance(error, InvalidStatus):
        return _refused(where, error)
    heals = False
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        why = f"did not answer within {OPEN_TIMEOUT:g}s"
    elif isinstance(error, OSError):
        why, heals = f"cannot be reached: {error.strerror or error}", True
    elif isinstance(error, (InvalidHandshake, EOFError)):
        why, heals = f"is not a bridge, or is just ending ({error})", True
    else:
        why = f"cannot be used: {error!r}"
    # Errors that a retry may solve: the bridge is being restarted.
    return BridgeUnavailable(f"{where} {why}. {_RESTART}", data={"retryable": heals})


def _refused(where: str, error: InvalidStatus) -> BridgeError:
    status = error.response.status_code
    detail = bytes(error.response.body or b"")[:200].decode("utf-8", "replace").strip()
    said = f"(HTTP {status}{': ' + detail if detail else ''})"
    if status == 503:
        return BridgeBusy(
            f"{where} takes no more connections {said}. Try again later.", data={"retryable": True}
        )
    if status == 401:
        return BridgeUnavailable(
            f"{where} refused the token {said}: RUN_BRIDGE_TOKEN and RUN_BRIDGE_SESSION belong to "
            f"another run. {_RESTART}"
        )
    return BridgeUnavailable(f"{where} refused the connection {said}. {_RESTART}")
