"""The requests of tools and agents, without a bridge: they fit the types of the wire."""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

import pytest

from vscode_bridge import AsyncClient, Client, Conflict, _types
from vscode_bridge._call import Call
from vscode_bridge._exceptions import request_failed
from vscode_bridge.agent import Agent
from vscode_bridge.tools import AsyncTools, Media, Page, Tools

from bridge import ROOT
from mirror import misfit

EXAMPLES = json.loads((ROOT / "tests" / "wire" / "methods.json").read_text(encoding="utf-8"))

ROUTE = {"runtimeId": "w1", "path": "/no/such"}


def example(method: str, **members: Any) -> Dict[str, Any]:
    """The first golden example of a method whose parameters have these members."""
    return next(
        case
        for case in EXAMPLES
        if case["method"] == method and members.items() <= case["params"].items()
    )


class FakeClient(Client):
    """Answers with golden results, and checks the requests."""

    def __init__(self, **members: Any) -> None:
        super().__init__()
        self.members = members
        self.asked: List[Tuple[str, Dict[str, Any]]] = []

    def request(
        self,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        sent = dict(params or {})
        self.asked.append((method, sent))
        kind, _ = _types.METHODS[method]
        own = {name: value for name, value in sent.items() if name != "runtimeId"}
        if "path" not in getattr(kind, "__annotations__", {}) and not method.startswith("file/"):
            own.pop("path", None)
        if method in ("file/move", "file/copy"):
            own.pop("path", None)
        assert misfit(own, kind, method) == ""
        members = {"raw": True} if sent.get("raw") else self.members
        return example(method, **members)["result"]

    def _start(self, call: Call) -> None:
        message = json.loads(call.request.text)
        result = self.request(message["method"], message["params"])
        for value in example(message["method"], stream=True)["progress"]:
            assert call.on_progress is not None
            call.on_progress(value)
        call.on_done(result, None)

    def last(self) -> Dict[str, Any]:
        """The latest request."""
        return self.asked[-1][1]


@pytest.fixture
def client(no_bridge: None) -> FakeClient:
    return FakeClient()


@pytest.fixture
def tools(client: FakeClient) -> Tools:
    return Tools(client, runtime="w1", path="/no/such")


def use_everything(tools: Tools, agent: Agent) -> None:
    shell = tools.create_shell("s1", cwd="src", environment={"A": "b"}, columns=80, rows=24)
    tools.shells()
    shell.run("make", limit=1.5, quiet=1, return_on_input=True, colours=True)
    shell.wait(command=1, start=65)
    shell.output(65, size=4)
    shell.output_bytes(65, 4)
    shell.type("yes")
    shell.press("C-c", "ENTER")
    shell.interrupt()
    shell.signal("TERM")
    shell.resize(120, 40)
    shell.attach_command(read_only=True)
    shell.cell("1", limit=2, restart=True)
    shell.restart_kernel()
    shell.close()
    tools.read("a", first_line=2, last_line=3, limit_bytes=10)
    tools.write("a", "x", replace=False, if_version="v1")
    tools.write("a", b"x")
    tools.create("a", "x")
    tools.replace("a", "x", "y", if_version="v1")
    tools.insert("a", 0, "x", if_version="v1")
    tools.undo("a", force=True)
    tools.list("src", nested=True, hidden=True, limit=1)
    tools.glob("*", hidden=True, ignored=True)
    tools.grep("x", literal=True, ignore_case=True, files="*.py", context=1)
    tools.stat("a", follow=False)
    tools.hash("a")
    tools.make_directory("a")
    tools.remove_directory("a")
    tools.remove("a", recursive=True)
    tools.move("a", "b", replace=True)
    tools.copy("a", "b")
    tools.browse("http://127.0.0.1:8000/", limit=30)
    agent.run("echo hi", timeout=120, action_id="a1")
    agent.cancel("a1")


def test_what_is_sent_fits_the_types(client: FakeClient, tools: Tools) -> None:
    use_everything(tools, Agent("build", client=client, runtime="w1", path="/no/such"))
    asked: Set[str] = {method for method, _ in client.asked}
    families = ("shell/", "file/", "cell/", "page/", "action/")
    unequal = asked ^ {method for method in _types.METHODS if method.startswith(families)}
    assert not unequal, "use_everything must call each tool of METHODS in _types/__init__.py once"


def test_every_request_names_the_runtime(client: FakeClient, tools: Tools) -> None:
    use_everything(tools, Agent(client=client, runtime="w1", path="/no/such"))
    for method, params in client.asked:
        assert params["runtimeId"] == "w1", method
        assert params["path"].startswith("/no/such"), method


def test_without_a_choice_no_request_names_a_runtime(client: FakeClient) -> None:
    use_everything(Tools(client), Agent(client=client))
    for method, params in client.asked:
        assert "runtimeId" not in params, method
        assert method.startswith("file/") or "path" not in params, method


def test_relative_paths_begin_at_the_directory(client: FakeClient, tools: Tools) -> None:
    tools.stat("a/b")
    assert client.last() == {"runtimeId": "w1", "path": "/no/such/a/b", "follow": True}
    for path, sent in {
        ".": "/no/such",
        "../a": "/no/a",
        "./../../../a": "/a",
        "a/../b": "/no/such/a/../b",  # a may be a link
    }.items():
        tools.stat(path)
        assert client.last()["path"] == sent
    tools.stat("/elsewhere")
    assert client.last()["path"] == "/elsewhere"
    tools.create_shell(cwd="src")
    assert (client.last()["cwd"], client.last()["path"]) == ("/no/such/src", "/no/such")
    tools.browse("page.html")
    assert client.last() == {**ROUTE, "url": "/no/such/page.html"}
    tools.move("a", "b")
    assert {"from": "/no/such/a", "to": "/no/such/b"}.items() <= client.last().items()
    Tools(client).move("/a", "b")
    assert client.last() == {"from": "/a", "to": "b", "replace": False, "path": "/a"}
    Tools(client).move("a", "b")
    assert "path" not in client.last()


def test_directories_are_sent_by_their_real_path(client: FakeClient, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    (tmp_path / "link").symlink_to("to")
    Tools(client, path=tmp_path / "link").stat("a")
    assert client.last()["path"] == str(tmp_path.resolve() / "to" / "a")


def test_cells(client: FakeClient, tools: Tools) -> None:
    pieces: List[str] = []
    cell = tools.shell().cell("print('hi')", restart=True, on_output=pieces.append)
    assert client.last()["stream"] is True
    assert pieces == ["hi\n"]
    assert (cell.text, cell.ended, cell.ok, cell.omitted) == ("hi\n", "finished", True, 7)
    assert cell.new_kernel == "restarted"
    assert cell.pictures == [Media("image/png", b"\x89PNG\r\n\x1a\n")]
    assert cell.details["python"] == "/usr/bin/python3"
    failed = Tools(FakeClient(code="1/0")).shell().cell("1/0")
    assert (failed.ended, failed.ok, failed.omitted) == ("raised", False, 0)
    assert (failed.pictures, failed.new_kernel) == ([], None)


def test_pages(tools: Tools) -> None:
    page = tools.browse("http://127.0.0.1:8000/")
    picture = Media("image/png", b"\x89PNG\r\n\x1a\n")
    text = "A title\n[1]: /next"
    assert page == Page(url="http://127.0.0.1:8000/", text=text, picture=picture, error=None)
    missing = Tools(FakeClient(url="missing.html")).browse("missing.html")
    assert (missing.picture, missing.error) == (None, "missing.html does not exist")


def test_contents_have_versions(client: FakeClient) -> None:
    version = example("file/read")["result"]["version"]
    text = Tools(client).read("a.py")
    assert (text, text.version) == ("y = 2\n", version)
    assert (text.encoding, text.total_lines) == ("UTF-8", 2)
    content = Tools(client).read_bytes("a.o")
    assert (content, content.version) == (b"\x00\x01\x02\xff", version)
    assert Tools(FakeClient(path="a.png")).read_media("a.png").version == version
    huge = Tools(FakeClient(tail=1)).read("/w/huge.log", tail=1)
    assert (huge.version, huge.total_lines) == (None, None)
    assert Tools(client).write("a", "x").version == version
    assert Tools(client).replace("a", "x", "y").version != version
    for read in (Tools(FakeClient(path="a.o")).read, Tools(client).read_media):
        with pytest.raises(Conflict) as caught:
            read("a.o")
        assert caught.value.kind == "Conflict"


def test_a_conflict_has_an_exception_of_its_own() -> None:
    error = request_failed({"code": -32063, "message": "x", "data": {"reason": "changed"}})
    assert type(error) is Conflict
    assert (error.kind, error.data["reason"]) == ("Conflict", "changed")


def test_asyncio_has_the_same_methods() -> None:
    def methods(owner: type) -> Dict[str, Callable[..., Any]]:
        return {name: of for name, of in inspect.getmembers(owner, callable) if name[0] != "_"}

    blocking, asynchronous = methods(Tools), methods(AsyncTools)
    assert set(blocking) == set(asynchronous)
    for name in set(blocking) - {"shell"}:
        assert not inspect.iscoroutinefunction(blocking[name])
        assert inspect.iscoroutinefunction(asynchronous[name]), name
    # The methods of editors, too: they are written once.
    blocking, asynchronous = methods(Client), methods(AsyncClient)
    assert set(blocking) - set(asynchronous) == {"chat_async", "require"}
    for name in ("show_message", "execute_command", "get_chat_history"):
        assert inspect.iscoroutinefunction(asynchronous[name])
        assert inspect.signature(blocking[name]) == inspect.signature(asynchronous[name])
    assert inspect.getdoc(Client.chat) == inspect.getdoc(AsyncClient.chat)


def test_tools_for_asyncio_choose_the_same_runtime(
    monkeypatch: pytest.MonkeyPatch, client: FakeClient
) -> None:
    async def request(
        self: AsyncClient, method: str, params: Mapping[str, Any], timeout: Optional[float] = None
    ) -> Any:
        return client.request(method, params, timeout)

    monkeypatch.setattr(AsyncClient, "request", request)

    async def main() -> None:
        tools = AsyncTools(AsyncClient(), runtime="w1", path="/no/such")
        await tools.shell().cell("1")

    asyncio.run(main())
    assert client.last() == {**ROUTE, "shell": "main", "code": "1"}
