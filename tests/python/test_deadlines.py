"""Deadlines and the queue of a connection, with a fake clock and without a socket."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Callable, Coroutine, List, Optional

from websockets.protocol import State

from vscode_bridge import BridgeTimeout, Endpoint, _protocol
from vscode_bridge._call import Call
from vscode_bridge._connection import Connection


class Timer:
    def __init__(self, when: float, action: Callable[[], None]) -> None:
        self.when = when
        self.action = action
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """The part of an event loop that a connection uses to keep time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: List[Timer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, action: Callable[[Call], None], call: Call) -> Timer:
        self.timers.append(Timer(when, lambda: action(call)))
        return self.timers[-1]

    def create_task(self, work: Coroutine[Any, Any, None]) -> object:
        work.close()  # no connection is opened here
        return object()

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for timer in [t for t in self.timers if not t.cancelled and t.when <= self.now]:
            timer.cancel()
            timer.action()


class Under:
    """A connection with one call in flight."""

    def __init__(self, timeout: Optional[float], method: str = "vscode/chat") -> None:
        self.loop = Loop()
        endpoint = Endpoint("ws://127.0.0.1:1/", "t", "s")
        self.connection = Connection(self.loop, lambda: endpoint)  # type: ignore[arg-type]
        self.errors: List[object] = []
        request = _protocol.new_request(method, {})
        self.call = Call(request, timeout, on_done=lambda _, error: self.errors.append(error))
        self.connection.start(self.call)
        self.call.sent = True

    def progress(self) -> None:
        text = f'{{"method":"$/progress","params":{{"id":{self.call.request.id},"value":1}}}}'
        self.connection._receive(text)

    def ends_after(self, seconds: float) -> bool:
        """Whether the call ends exactly at this time."""
        self.loop.pass_time(seconds - 0.001)
        early = bool(self.errors)
        self.loop.pass_time(0.002)
        return not early and len(self.errors) == 1 and isinstance(self.errors[0], BridgeTimeout)


def test_the_bridge_has_a_second_to_say_why() -> None:
    assert Under(timeout=5).ends_after(6)
    assert Under(timeout=0).ends_after(31)
    assert Under(timeout=None).ends_after(31)
    assert Under(timeout=None, method="vscode/executeCommand").ends_after(11)


def test_a_timeout_of_the_caller_is_hard() -> None:
    under = Under(timeout=5)
    under.loop.pass_time(4)
    under.progress()
    assert under.ends_after(2)


def test_progress_renews_the_default() -> None:
    under = Under(timeout=None)
    under.loop.pass_time(20)
    under.progress()
    assert under.ends_after(31)


def test_no_call_takes_longer_than_the_bridge_allows() -> None:
    assert Under(timeout=10_000).ends_after(601)
    under = Under(timeout=None)
    for _ in range(25):
        under.loop.pass_time(24)
        under.progress()
    assert under.ends_after(1)


def test_a_timeout_tells_the_bridge_once() -> None:
    under = Under(timeout=5)
    under.loop.pass_time(6)
    cancel = _protocol.cancel_text(under.call.request.id)
    assert list(under.connection._outbox)[1:] == [cancel]
    under.connection._receive(f'{{"id":{under.call.request.id},"result":"late"}}')
    assert len(under.errors) == 1


def test_a_closing_connection_is_given_nothing() -> None:
    """The requests go over the next connection instead, so they are not lost."""
    under = Under(timeout=5)
    under.call.sent = False
    closing: Any = SimpleNamespace(state=State.CLOSING)

    async def write() -> None:
        await under.connection._write(closing, asyncio.Event())

    asyncio.run(write())
    assert list(under.connection._outbox) == [under.call]
    assert not under.call.sent
