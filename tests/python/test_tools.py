"""Shells and files through a real daemon and a real tmux."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from pathlib import Path
from typing import Any, Awaitable, Callable, Iterator, List

import pytest

from vscode_bridge import (
    AsyncClient,
    Client,
    Conflict,
    RequestRefused,
    _protocol,
    agent,
)
from vscode_bridge.tools import (
    AsyncTools,
    Command,
    Copied,
    Entry,
    Hashed,
    Match,
    Media,
    OutputLost,
    Tools,
)

from bridge import LIMIT, Daemon


@pytest.fixture
def client(sandbox_daemon: Daemon) -> Iterator[Client]:
    """A client of that daemon."""
    with Client(sandbox_daemon.endpoint) as client:
        yield client


@pytest.fixture
def tools(client: Client) -> Tools:
    """The tools of that daemon's sandbox."""
    return Tools(client)


def in_thread(work: Callable[[], Command]) -> Callable[[], Command]:
    """Starts work in a thread; the result waits for it."""
    results: List[Command] = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()

    def result() -> Command:
        thread.join(LIMIT)
        assert results, f"the command did not end within {LIMIT:g}s"
        return results[0]

    return result


def test_a_shell_stays(tools: Tools, workspace: Path) -> None:
    shell = tools.shell()
    first = shell.run("mkdir sub; cd sub; x=kept; echo 'a  b'; (exit 3)")
    assert (first.state, first.exit_code, first.text) == ("finished", 3, "a  b")
    assert first.finished
    assert not first.ok
    assert first.cwd == str(workspace / "sub")
    second = shell.run("echo $x")
    assert second.ok
    assert (second.text, second.number) == ("kept", first.number + 1)
    assert shell.wait(command=second.number).text == "kept"
    with pytest.raises(RequestRefused, match="only the latest can be awaited"):
        shell.wait(command=first.number)
    assert second.duration is not None
    assert second.details["user"]
    assert [each["shell"] for each in tools.shells()] == ["main"]
    shell.close()
    assert tools.shells() == []


def test_shells_are_made_to_order(tools: Tools) -> None:
    tools.make_directory("deep")
    shell = tools.create_shell("s1", cwd="deep", environment={"A": "b c"})
    assert shell.run('echo "$A"; basename "$PWD"').text == "b c\ndeep"
    shell.resize(90, 30)
    assert shell.run("stty size").text == "30 90"
    assert "attach-session -r" in shell.attach_command(read_only=True)
    assert tools.create_shell().name != "s1"
    with pytest.raises(RequestRefused, match="exists") as caught:
        tools.create_shell("s1")
    assert (caught.value.kind, caught.value.data["reason"]) == ("Conflict", "exists")


def test_a_command_goes_on_and_is_fed(tools: Tools) -> None:
    shell = tools.shell()
    asking = shell.run("echo ready; read -s x; echo got $x", limit=0)
    assert asking.exit_code is None
    assert not asking.finished
    for _ in range(int(LIMIT / 0.3)):  # typed before the command waits, the line would be shown
        asking = shell.wait(return_on_input=True, limit=0.3)
        if asking.state == "waitingForInput":
            break
    assert (asking.state, asking.details["input"]) == ("waitingForInput", "hidden")
    assert shell.wait(limit=0).details["why"] == "limit"
    with pytest.raises(RequestRefused) as caught:
        shell.run("true")
    assert caught.value.data["reason"] == "busy"
    shell.type("it")
    assert shell.wait().text == "ready\ngot it"
    assert shell.output() == "ready\ngot it"
    assert shell.output_bytes(asking.start, 7) == b"ready\r\n"


def test_keys_and_signals(tools: Tools) -> None:
    shell = tools.shell()
    for act, code in ((shell.interrupt, 130), (lambda: shell.signal("TERM"), 143)):
        ready = threading.Event()

        def on_output(text: str, ready: threading.Event = ready) -> None:
            if "ready" in text:
                ready.set()

        # The program itself prints this: a key that comes before it has started reaches only bash.
        command = "sh -c 'echo ready; exec sleep 1000'"
        ended = in_thread(lambda c=command, o=on_output: shell.run(c, on_output=o))  # type: ignore[misc]
        assert ready.wait(LIMIT), f"the command did not start within {LIMIT:g}s"
        act()
        assert ended().exit_code == code


def test_output_comes_whole_and_in_order(tools: Tools) -> None:
    pieces: List[str] = []
    ended = tools.shell().run("seq 1 100000; printf 'ende\\303\\274'", on_output=pieces.append)
    expected = "".join(f"{n}\r\n" for n in range(1, 100_001)) + "endeü"
    assert "".join(pieces) == expected
    assert ended.text.startswith("1\n2\n")
    assert ended.text.endswith("\n100000\nendeü")
    assert "bytes omitted" in ended.text


def test_output_that_is_read_in_parts_says_where_it_stops(tools: Tools) -> None:
    shell = tools.shell()
    ended = shell.run("echo one; echo two; echo three")
    whole = shell.output()
    assert (whole, whole.start, whole.end, whole.more) == (
        "one\ntwo\nthree",
        ended.start,
        ended.end,
        False,
    )
    first = shell.output(size=7)
    assert (first, first.more, first.end) == ("one", True, ended.start + len("one\r\n"))
    second = shell.output(first.end, size=7)
    assert (second, second.more, second.start) == ("two", True, first.end)


def test_files(tools: Tools) -> None:
    written = tools.write("src/a.py", "x = 1\ny = 2\n")
    assert (written.created, written.owner_kept) == (True, True)
    assert "+x = 3" in tools.replace("src/a.py", "x = 1", "x = 3").diff
    assert tools.insert("src/a.py", 2, "z = 0").line == 3
    assert tools.read("src/a.py", first_line=2) == "y = 2\nz = 0\n"
    assert tools.read("src/a.py", tail=1) == "z = 0\n"
    tools.undo("src/a.py")
    assert tools.read("src/a.py") == "x = 3\ny = 2\n"
    tools.create("b", "text")
    tools.write("blob", b"\x00\xff")
    assert tools.read_bytes("blob") == b"\x00\xff"
    for read in (tools.read, tools.read_bytes):
        with pytest.raises(Conflict, match="the limit is 3"):
            read("src/a.py", limit_bytes=3)
    picture = Media("image/png", b"\x89PNG\r\n\x1a\n")
    tools.write("picture", picture.data)
    assert tools.read_media("picture") == picture
    with pytest.raises(Conflict, match="no picture"):
        tools.read_media("src/a.py")
    tools.remove("picture")
    assert tools.list() == [Entry("b", "file"), Entry("blob", "file"), Entry("src", "directory")]
    assert tools.glob("**/*.py") == ["src/a.py"]
    assert tools.grep("^X", ignore_case=True) == [Match("src/a.py", 1, "x = 3", True)]
    assert tools.stat("blob")["size"] == 2
    blob = tools.read_bytes("blob")
    assert tools.hash("blob") == Hashed(hashlib.sha256(blob).hexdigest(), 2, blob.version)
    assert tools.copy("src", "copy") == Copied(owner_kept=True)
    assert not tools.write("copy/a.py", "").created
    tools.move("b", "copy/b")
    tools.remove("copy", recursive=True)
    assert [entry.path for entry in tools.list(nested=True)] == ["blob", "src", "src/a.py"]


def test_what_is_not_complete_says_so(tools: Tools, workspace: Path) -> None:
    tools.write("a", "x\n")
    tools.write("b", "x\n")
    tools.write(".hidden", "x\n")
    for found in (tools.list(), tools.glob("*"), tools.grep("x")):
        assert (len(found), found.truncated, found.unreadable) == (2, False, 0)
        assert found.complete
    for found in (tools.list(limit=1), tools.glob("*", limit=1), tools.grep("x", limit=1)):
        assert (len(found), found.truncated, found.complete) == (1, True, False)
    assert tools.glob("*", hidden=True) == [".hidden", "a", "b"]
    assert len(tools.grep("x", hidden=True)) == 3


def test_a_file_that_has_changed_is_left_alone(tools: Tools) -> None:
    first = tools.write("a", "one\n").version
    assert tools.read("a").version == first
    assert tools.read_bytes("a").version == first
    second = tools.write("a", "two\n", if_version=first).version
    for change in (
        lambda: tools.write("a", "three\n", if_version=first),
        lambda: tools.replace("a", "two", "three", if_version=first),
        lambda: tools.insert("a", 0, "three", if_version=first),
    ):
        with pytest.raises(Conflict) as caught:
            change()
        assert caught.value.data["reason"] == "changed"
        assert caught.value.data["version"] == second
    assert tools.read("a") == "two\n"
    assert tools.replace("a", "two", "three", if_version=second).version == tools.read("a").version
    tools.create("new", "x\n")
    assert tools.undo("new").version is None


def test_directories(tools: Tools) -> None:
    tools.make_directory("a/b")
    with pytest.raises(RequestRefused) as caught:
        tools.remove_directory("a")
    assert caught.value.data["reason"] == "notEmpty"
    tools.remove_directory("a/b")
    tools.remove_directory("a")
    assert tools.list() == []


def test_terminals_and_colours(tools: Tools) -> None:
    shell = tools.create_shell(columns=90, rows=20)
    assert shell.run("stty size").text == "20 90"
    command = r"printf '\033[31mred\033[0m'"
    assert shell.run(command).text == "red"
    assert "31mred" in shell.run(command, colours=True).text
    assert "31mred" in shell.wait(colours=True).text
    assert (shell.output(), "31mred" in shell.output(colours=True)) == ("red", True)


def test_lost_output_is_warned_of(
    start_daemon: Callable[..., Daemon], enter: Callable[[Daemon], Daemon], workspace: Path
) -> None:
    enter(start_daemon("--sandbox", str(workspace), "--log-quota", "1"))
    command = "head -c 3000000 /dev/zero | tr '\\0' x"
    with Tools() as tools:
        with pytest.warns(OutputLost, match="bytes of output were lost"):
            ended = tools.shell().run(command)
        assert ended.ok
        assert ended.end - ended.start + ended.lost == 3_000_000
    observation = agent.run(command)
    assert observation.ok
    assert f"{observation.lost} bytes of output were lost" in observation.note


@pytest.mark.parametrize(
    ("act", "kind", "reason"),
    [
        (lambda tools: tools.read("../x"), "OutsideWorkspace", "escapes"),
        (lambda tools: tools.read("missing"), "NotFound", "noSuchPath"),
        (lambda tools: tools.replace("a", "none", "x"), "NotFound", "noMatch"),
        (lambda tools: tools.create("a", "x"), "Conflict", "exists"),
        (lambda tools: tools.grep("("), "InvalidParams", "badPattern"),
        (lambda tools: tools.shell("none").type("x"), "NotFound", "noSuchShell"),
    ],
)
def test_what_fails_says_why(
    tools: Tools, act: Callable[[Tools], object], kind: str, reason: str
) -> None:
    tools.write("a", "text\n")
    with pytest.raises(RequestRefused) as caught:
        act(tools)
    assert (caught.value.kind, caught.value.data["reason"]) == (kind, reason)


def test_without_a_sandbox_the_remedy_is_told(daemon: Daemon) -> None:
    with Client(daemon.endpoint) as client, pytest.raises(RequestRefused, match="--sandbox DIR"):
        Tools(client).shell().run("true")


def run(daemon: Daemon, work: Callable[[AsyncTools], Awaitable[Any]]) -> None:
    """Runs `work` with tools for asyncio, within the limit."""

    async def main() -> None:
        async with AsyncClient(daemon.endpoint) as client:
            await asyncio.wait_for(work(AsyncTools(client)), LIMIT)

    asyncio.run(main())


def test_the_same_for_asyncio(sandbox_daemon: Daemon) -> None:
    async def work(tools: AsyncTools) -> None:
        await tools.write("src/a.py", "x = 1\n")
        assert "+x = 2" in (await tools.replace("src/a.py", "1", "2")).diff
        hashed = await tools.hash("src/a.py")
        assert (hashed.sha256, hashed.size) == (hashlib.sha256(b"x = 2\n").hexdigest(), 6)
        shell = await tools.create_shell("s1", cwd="src")
        ended = await shell.run("cat a.py; (exit 3)")
        assert (ended.text, ended.exit_code) == ("x = 2", 3)
        assert repr(shell) == "AsyncShell('s1')"
        first, second = await asyncio.gather(
            tools.shell("s2").run("mkfifo pipe; cat pipe"),
            shell.run("until [ -p ../pipe ]; do :; done; echo through > ../pipe"),
        )
        assert (first.text, second.ok) == ("through", True)
        with pytest.raises(RequestRefused) as caught:
            await tools.read("missing")
        assert caught.value.kind == "NotFound"

    run(sandbox_daemon, work)


def test_output_comes_whole_and_in_order_for_asyncio(sandbox_daemon: Daemon) -> None:
    async def work(tools: AsyncTools) -> None:
        pieces: List[str] = []
        await tools.shell().run("seq 1 100000", on_output=pieces.append)
        assert "".join(pieces) == "".join(f"{n}\r\n" for n in range(1, 100_001))

    run(sandbox_daemon, work)


def test_cancelling_the_task_leaves_the_command_alone(sandbox_daemon: Daemon) -> None:
    async def work(tools: AsyncTools) -> None:
        shell, ready = tools.shell(), asyncio.Event()
        command = "echo ready; read -s x; echo got $x"
        task = asyncio.ensure_future(shell.run(command, on_output=lambda text: ready.set()))
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await shell.wait(limit=0)).details["why"] == "limit"
        await shell.type("it")
        assert "got it" in (await shell.wait()).text

    run(sandbox_daemon, work)


def test_it_has_a_connection_of_its_own(inside_sandbox: Daemon) -> None:
    with Tools() as tools:
        tools.write("a", "one")

    async def main() -> str:
        async with AsyncTools() as tools:
            return await tools.read("a")

    assert asyncio.run(main()) == "one"


def test_commands_may_take_long() -> None:
    assert _protocol.default_timeout("shell/run") == _protocol.TOOL_TIMEOUT_MAX
    assert _protocol.default_timeout("file/stat") == 120
    assert _protocol.longest_timeout("vscode/chat") == _protocol.TIMEOUT_MAX
