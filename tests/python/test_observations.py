"""Results of actions as values and exceptions, and their output, without a daemon."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Tuple, Type

import pytest

from vscode_bridge import RequestFailed, agent
from vscode_bridge._agent import AgentMethods
from vscode_bridge._observations import observation_of
from vscode_bridge._output import Output
from vscode_bridge._route import Route
from vscode_bridge._twins import AsyncTwin


def result(kind: str, **extras: Any) -> Dict[str, Any]:
    return {"message": "m", "observation": kind, "content": "text", "extras": extras}


def test_each_kind_has_a_type() -> None:
    metadata = {"exit_code": 3, "working_dir": "/w", "suffix": "\n[over]"}
    raw = result("run", command="c", metadata=metadata)
    ran = observation_of(raw)
    assert ran == agent.RunObservation("run", "text", raw, "c", 3, "/w", "[over]")
    raw = result("run_ipython", code="c", image_urls=["data:"])
    assert observation_of(raw) == agent.CellObservation("run_ipython", "text", raw, "c", ["data:"])
    raw = result("run_ipython", code="c", image_urls=None)
    assert observation_of(raw) == agent.CellObservation("run_ipython", "text", raw, "c", [])
    raw = result("read", path="/a")
    assert observation_of(raw) == agent.ReadObservation("read", "text", raw, "/a")
    raw = result("write", path="/a")
    assert observation_of(raw) == agent.WriteObservation("write", "text", raw, "/a")
    raw = result("edit", path="/a", diff="d")
    assert observation_of(raw) == agent.EditObservation("edit", "text", raw, "/a", "d")
    raw = result("browse", url="u", error=False, screenshot="", last_browser_action_error="")
    page = agent.BrowseObservation("browse", "text", raw, url="u", error=None, screenshot=None)
    assert observation_of(raw) == page
    raw = result("browse", url="u", error=True, screenshot="p", last_browser_action_error="404")
    page = agent.BrowseObservation("browse", "text", raw, url="u", error="404", screenshot="p")
    assert observation_of(raw) == page
    for kind in ("success", "new kind"):
        assert observation_of(result(kind)) == agent.Observation(kind, "text", result(kind))


@pytest.mark.parametrize(("exit_code", "ok", "finished"), [(0, 1, 1), (3, 0, 1), (-1, 0, 0)])
def test_a_command_that_goes_on_has_no_exit_code(exit_code: int, ok: int, finished: int) -> None:
    ran = observation_of(result("run", metadata={"exit_code": exit_code, "working_dir": None}))
    assert isinstance(ran, agent.RunObservation)
    assert (ran.ok, ran.finished) == (ok, finished)
    assert (ran.exit_code is None) == (not finished)


@pytest.mark.parametrize(
    ("error_id", "exception"),
    [
        ("not_found", agent.NotFound),
        ("outside_workspace", agent.OutsideWorkspace),
        ("permission", agent.PermissionDenied),
        ("invalid", agent.Invalid),
        ("refused", agent.Refused),
        ("unavailable", agent.Unavailable),
        ("internal", agent.ActionError),
        ("new class", agent.ActionError),
    ],
)
def test_errors_are_raised(error_id: str, exception: Type[agent.ActionError]) -> None:
    raw = result("error", error_id=error_id)
    with pytest.raises(RequestFailed) as caught:
        observation_of(raw)
    error = caught.value
    assert type(error) is exception
    assert isinstance(error, agent.ActionError)
    assert (str(error), error.error_id, error.raw) == ("text", error_id, raw)
    assert (error.kind, exception.__module__) == (exception.__name__, "vscode_bridge.agent")


class Answering(AgentMethods, AsyncTwin):
    """An agent that gets the same answer to every request, and records its requests."""

    def __init__(self, answer: Mapping[str, Any], *pieces: Mapping[str, Any]) -> None:
        self.shell = "s"
        self._route = Route()
        self.answer = answer
        self.pieces = pieces
        self.asked: List[Tuple[Mapping[str, Any], Optional[float]]] = []

    async def _request(
        self, method: str, params: Mapping[str, Any], timeout: Optional[float] = None
    ) -> Any:
        self.asked.append((params, timeout))
        return self.answer

    async def _follow(
        self,
        method: str,
        params: Mapping[str, Any],
        on_progress: Callable[[Any], Awaitable[None]],
        timeout: Optional[float] = None,
    ) -> Any:
        for piece in self.pieces:
            await on_progress(piece)
        return result("run")


def test_an_answer_of_another_kind_is_an_error() -> None:
    with pytest.raises(RequestFailed, match=r"'write'.*same version") as caught:
        asyncio.run(Answering(result("write")).read("a"))
    assert caught.value.kind == "BadHostResponse"


def test_who_says_how_long_to_wait_is_not_called_before() -> None:
    answering = Answering(result("run"))

    async def main() -> None:
        await answering.run("c")
        await answering.run("c", timeout=2.5)
        await answering.run("c", timeout=3, blocking=False)
        await answering.run("c", blocking=True)

    asyncio.run(main())
    blocking = [params["args"]["blocking"] for params, _ in answering.asked]
    assert blocking == [False, True, False, True]
    assert [timeout for _, timeout in answering.asked] == [None, 2.5, 3, None]
    assert [params.get("timeout") for params, _ in answering.asked] == [None, 2500, 3000, None]


def test_a_gap_is_filled_from_the_log_of_the_agents_shell() -> None:
    shown: List[str] = []
    missing = {"base64": base64.b64encode(b"two ").decode()}
    pieces = [{"text": "one ", "start": 7, "end": 11}, {"text": "three", "start": 15, "end": 20}]
    answering = Answering(missing, *pieces)
    asyncio.run(answering.run("c", on_output=shown.append))
    assert "".join(shown) == "one two three"
    assert answering.asked == [({"shell": "s", "from": 11, "bytes": 4, "raw": True}, None)]


def test_output_of_cells_and_fresh_shells_has_no_place() -> None:
    shown: List[str] = []
    answering = Answering({}, {"text": "one"}, {"text": "two"})
    asyncio.run(answering.execute("run_ipython", {"code": "c"}, on_output=shown.append))
    assert (shown, answering.asked) == (["one", "two"], [])


def test_what_was_dropped_on_the_way_is_read_from_the_log() -> None:
    log = "one zwö three four".encode()
    shown: List[str] = []
    reads: List[Tuple[int, int]] = []

    async def read_log(start: int, size: int) -> bytes:
        reads.append((start, size))
        return log[start : start + min(size, 3)]  # less than asked for, cut within the ö

    async def main() -> None:
        output = Output(shown.append, read_log)
        await output.piece(log[:4], 0, 4)
        await output.piece(log[9:15], 9, 15)
        await output.finish(0, len(log))
        output.flush()

    asyncio.run(main())
    assert "".join(shown) == log.decode()
    assert reads == [(4, 5), (7, 2), (15, 4), (18, 1)]


def test_a_character_that_is_never_finished_is_shown_as_such() -> None:
    shown: List[str] = []

    async def main() -> None:
        output = Output(shown.append, lambda start, size: asyncio.sleep(0, b""))
        await output.piece("aö".encode()[:2], 5, 7)
        await output.finish(5, 9)  # the log has no more
        output.flush()

    asyncio.run(main())
    assert shown == ["a", "\N{REPLACEMENT CHARACTER}"]
