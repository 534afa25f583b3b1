"""The result of `chat_async`."""

from __future__ import annotations

import threading

import pytest

from vscode_bridge import AsyncResult, BridgeError, BridgeTimeout

from bridge import LIMIT


def test_before_and_after() -> None:
    release = threading.Event()

    def work() -> str:
        assert release.wait(LIMIT)
        return "text"

    pending = AsyncResult.of(work)
    assert (pending.done(), pending.result(), pending.error()) == (False, None, None)
    with pytest.raises(BridgeTimeout, match="goes on"):
        pending.wait(0.01)
    release.set()
    assert pending.wait(LIMIT) == "text"
    assert (pending.done(), pending.result(), pending.error()) == (True, "text", None)


def test_an_error_is_text_or_raised() -> None:
    def work() -> str:
        raise BridgeError("went wrong")

    pending = AsyncResult.of(work)
    with pytest.raises(BridgeError, match="went wrong"):
        pending.wait(LIMIT)
    assert (pending.done(), pending.result(), pending.error()) == (True, None, "went wrong")


def test_callbacks_before_and_after() -> None:
    release, called = threading.Event(), threading.Event()

    def work() -> str:
        release.wait(LIMIT)
        return "text"

    pending = AsyncResult.of(work)
    seen = []

    def callback(result: AsyncResult) -> None:
        seen.append(result.result())
        called.set()

    pending.add_done_callback(callback)
    assert seen == []
    release.set()
    assert called.wait(LIMIT)
    pending.add_done_callback(callback)
    assert seen == ["text", "text"]


def test_ids_differ() -> None:
    assert AsyncResult.of(str).id != AsyncResult.of(str).id
