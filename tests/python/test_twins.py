"""Methods that are written once, for blocking code and for asyncio."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Mapping, Optional

import pytest

from vscode_bridge import AsyncClient, Client
from vscode_bridge._route import Route
from vscode_bridge._twins import AsyncTwin, BlockingTwin, Twin, twin


class Methods(Twin):
    @twin
    async def twice(self, text: str, *, end: str = "") -> str:
        """Says it twice."""
        return 2 * str(await self._request(text, {})) + end

    @twin
    async def sleep(self) -> None:
        """Waits for something that is no request."""
        await asyncio.sleep(0)

    async def _request(
        self, method: str, params: Mapping[str, Any], timeout: Optional[float] = None
    ) -> Any:
        return method


class Blocking(Methods, BlockingTwin):
    pass


class Asynchronous(Methods, AsyncTwin):
    pass


def test_one_method_two_ways_to_call_it() -> None:
    assert Blocking(Client(), Route()).twice("a", end="!") == "aa!"
    assert asyncio.run(Asynchronous(AsyncClient(), Route()).twice("a", end="!")) == "aa!"


def test_documentation_tells_them_apart() -> None:
    for owner, suspends in ((Blocking, False), (Asynchronous, True)):
        assert inspect.iscoroutinefunction(owner.twice) is suspends
        assert inspect.getdoc(owner.twice) == "Says it twice."
        parameters = list(inspect.signature(owner.twice).parameters)
        assert parameters == ["self", "text", "end"]


def test_a_blocking_method_cannot_wait_for_anything_else() -> None:
    with pytest.raises(AssertionError, match="something other than a request"):
        Blocking(Client(), Route()).sleep()
