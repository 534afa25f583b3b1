"""Shells and files through a real daemon and a real tmux."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any, Awaitable, Callable, Iterator, List

import pytest

from vscode_bridge import AsyncClient, Client, RequestFailed, RequestRefused, _protocol, agent
from vscode_bridge.sandbox import (
    AsyncSandbox,
    Command,
    Copied,
    Entry,
    Match,
    Media,
    OutputLost,
    Sandbox,
    Written,
)

from bridge import LIMIT, Daemon


@pytest.fixture
def client(sandbox_daemon: Daemon) -> Iterator[Client]:
    """A client of that daemon."""
    with Client(sandbox_daemon.endpoint) as client:
        yield client


@pytest.fixture
def sandbox(client: Client) -> Sandbox:
    """The sandbox of that daemon."""
    return Sandbox(client)


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


def test_a_shell_stays(sandbox: Sandbox, workspace: Path) -> None:
    shell = sandbox.shell()
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
    assert [each["shell"] for each in sandbox.shells()] == ["main"]
    shell.close()
    assert sandbox.shells() == []


def test_shells_are_made_to_order(sandbox: Sandbox) -> None:
    sandbox.make_directory("deep")
    shell = sandbox.create_shell("s1", cwd="deep", environment={"A": "b c"})
    assert shell.run('echo "$A"; basename "$PWD"').text == "b c\ndeep"
    shell.resize(90, 30)
    assert shell.run("stty size").text == "30 90"
    assert "attach-session -r" in shell.attach_command(read_only=True)
    assert sandbox.create_shell().name != "s1"
    with pytest.raises(RequestRefused, match="exists") as caught:
        sandbox.create_shell("s1")
    assert (caught.value.kind, caught.value.data["reason"]) == ("Conflict", "exists")


def test_a_command_goes_on_and_is_fed(sandbox: Sandbox) -> None:
    shell = sandbox.shell()
    asking = shell.run("echo ready; read -s x; echo got $x", limit=0)
    assert asking.exit_code is None
    assert not asking.finished
    for _ in range(int(LIMIT / 0.3)):  # typed before it waits, the line would be shown
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


def test_keys_and_signals(sandbox: Sandbox) -> None:
    shell = sandbox.shell()
    for act, code in ((shell.interrupt, 130), (lambda: shell.signal("TERM"), 143)):
        ready = threading.Event()

        def on_output(text: str, ready: threading.Event = ready) -> None:
            if "ready" in text:
                ready.set()

        # Said by the program itself: a key that comes while bash is starting it is for bash alone.
        command = "sh -c 'echo ready; exec sleep 1000'"
        ended = in_thread(lambda c=command, o=on_output: shell.run(c, on_output=o))  # type: ignore[misc]
        assert ready.wait(LIMIT), f"the command did not start within {LIMIT:g}s"
        act()
        assert ended().exit_code == code


def test_output_comes_whole_and_in_order(sandbox: Sandbox) -> None:
    pieces: List[str] = []
    ended = sandbox.shell().run("seq 1 100000; printf 'ende\\303\\274'", on_output=pieces.append)
    expected = "".join(f"{n}\r\n" for n in range(1, 100_001)) + "endeü"
    assert "".join(pieces) == expected
    assert ended.text.startswith("1\n2\n")
    assert ended.text.endswith("\n100000\nendeü")
    assert "bytes left out" in ended.text


def test_output_that_is_read_in_parts_says_where_it_stops(sandbox: Sandbox) -> None:
    shell = sandbox.shell()
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


def test_files(sandbox: Sandbox) -> None:
    assert sandbox.write("src/a.py", "x = 1\ny = 2\n") == Written(created=True, owner_kept=True)
    assert "+x = 3" in sandbox.replace("src/a.py", "x = 1", "x = 3").diff
    assert sandbox.insert("src/a.py", 2, "z = 0").line == 3
    assert sandbox.read("src/a.py", first_line=2) == "y = 2\nz = 0\n"
    assert sandbox.read("src/a.py", tail=1) == "z = 0\n"
    sandbox.undo("src/a.py")
    assert sandbox.read("src/a.py") == "x = 3\ny = 2\n"
    sandbox.create("b", "text")
    sandbox.write("blob", b"\x00\xff")
    assert sandbox.read_bytes("blob") == b"\x00\xff"
    for read in (sandbox.read, sandbox.read_bytes):
        with pytest.raises(RequestFailed, match="the limit is 3"):
            read("src/a.py", limit_bytes=3)
    picture = Media("image/png", b"\x89PNG\r\n\x1a\n")
    sandbox.write("picture", picture.data)
    assert sandbox.read_media("picture") == picture
    with pytest.raises(RequestFailed, match="no picture"):
        sandbox.read_media("src/a.py")
    sandbox.remove("picture")
    assert sandbox.list() == [Entry("b", "file"), Entry("blob", "file"), Entry("src", "directory")]
    assert sandbox.glob("**/*.py") == ["src/a.py"]
    assert sandbox.grep("^X", ignore_case=True) == [Match("src/a.py", 1, "x = 3", True)]
    assert sandbox.stat("blob")["size"] == 2
    assert sandbox.copy("src", "copy") == Copied(owner_kept=True)
    assert not sandbox.write("copy/a.py", "").created
    sandbox.move("b", "copy/b")
    sandbox.remove("copy", recursive=True)
    assert [entry.path for entry in sandbox.list(nested=True)] == ["blob", "src", "src/a.py"]


def test_what_is_not_complete_says_so(sandbox: Sandbox, workspace: Path) -> None:
    sandbox.write("a", "x\n")
    sandbox.write("b", "x\n")
    sandbox.write(".hidden", "x\n")
    for found in (sandbox.list(), sandbox.glob("*"), sandbox.grep("x")):
        assert (len(found), found.truncated, found.unreadable) == (2, False, 0)
        assert found.complete
    for found in (sandbox.list(limit=1), sandbox.glob("*", limit=1), sandbox.grep("x", limit=1)):
        assert (len(found), found.truncated, found.complete) == (1, True, False)
    assert sandbox.glob("*", hidden=True) == [".hidden", "a", "b"]
    assert len(sandbox.grep("x", hidden=True)) == 3


def test_directories(sandbox: Sandbox) -> None:
    sandbox.make_directory("a/b")
    with pytest.raises(RequestRefused) as caught:
        sandbox.remove_directory("a")
    assert caught.value.data["reason"] == "notEmpty"
    sandbox.remove_directory("a/b")
    sandbox.remove_directory("a")
    assert sandbox.list() == []


def test_terminals_and_colours(sandbox: Sandbox) -> None:
    shell = sandbox.create_shell(columns=90, rows=20)
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
    with Sandbox() as sandbox:
        with pytest.warns(OutputLost, match="bytes of output were lost"):
            ended = sandbox.shell().run(command)
        assert ended.ok
        assert ended.end - ended.start + ended.lost == 3_000_000
    observation = agent.run(command)
    assert observation.ok
    assert f"{observation.lost} bytes of output were lost" in observation.note


@pytest.mark.parametrize(
    ("act", "kind", "reason"),
    [
        (lambda sandbox: sandbox.read("../x"), "OutsideWorkspace", "escapes"),
        (lambda sandbox: sandbox.read("missing"), "NotFound", "noSuchPath"),
        (lambda sandbox: sandbox.replace("a", "none", "x"), "NotFound", "noMatch"),
        (lambda sandbox: sandbox.create("a", "x"), "Conflict", "exists"),
        (lambda sandbox: sandbox.grep("("), "InvalidParams", "badPattern"),
        (lambda sandbox: sandbox.shell("none").type("x"), "NotFound", "noSuchShell"),
    ],
)
def test_what_fails_says_why(
    sandbox: Sandbox, act: Callable[[Sandbox], object], kind: str, reason: str
) -> None:
    sandbox.write("a", "text\n")
    with pytest.raises(RequestRefused) as caught:
        act(sandbox)
    assert (caught.value.kind, caught.value.data["reason"]) == (kind, reason)


def test_without_a_sandbox_the_remedy_is_told(daemon: Daemon) -> None:
    with Client(daemon.endpoint) as client, pytest.raises(RequestRefused, match="--sandbox DIR"):
        Sandbox(client).shell().run("true")


def run(daemon: Daemon, work: Callable[[AsyncSandbox], Awaitable[Any]]) -> None:
    """Runs `work` with a sandbox for asyncio, within the limit."""

    async def main() -> None:
        async with AsyncClient(daemon.endpoint) as client:
            await asyncio.wait_for(work(AsyncSandbox(client)), LIMIT)

    asyncio.run(main())


def test_the_same_for_asyncio(sandbox_daemon: Daemon) -> None:
    async def work(sandbox: AsyncSandbox) -> None:
        await sandbox.write("src/a.py", "x = 1\n")
        assert "+x = 2" in (await sandbox.replace("src/a.py", "1", "2")).diff
        shell = await sandbox.create_shell("s1", cwd="src")
        ended = await shell.run("cat a.py; (exit 3)")
        assert (ended.text, ended.exit_code) == ("x = 2", 3)
        assert repr(shell) == "AsyncShell('s1')"
        first, second = await asyncio.gather(
            sandbox.shell("s2").run("mkfifo pipe; cat pipe"),
            shell.run("until [ -p ../pipe ]; do :; done; echo through > ../pipe"),
        )
        assert (first.text, second.ok) == ("through", True)
        with pytest.raises(RequestRefused) as caught:
            await sandbox.read("missing")
        assert caught.value.kind == "NotFound"

    run(sandbox_daemon, work)


def test_output_comes_whole_and_in_order_for_asyncio(sandbox_daemon: Daemon) -> None:
    async def work(sandbox: AsyncSandbox) -> None:
        pieces: List[str] = []
        await sandbox.shell().run("seq 1 100000", on_output=pieces.append)
        assert "".join(pieces) == "".join(f"{n}\r\n" for n in range(1, 100_001))

    run(sandbox_daemon, work)


def test_cancelling_the_task_leaves_the_command_alone(sandbox_daemon: Daemon) -> None:
    async def work(sandbox: AsyncSandbox) -> None:
        shell, ready = sandbox.shell(), asyncio.Event()
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
    with Sandbox() as sandbox:
        sandbox.write("a", "one")

    async def main() -> str:
        async with AsyncSandbox() as sandbox:
            return await sandbox.read("a")

    assert asyncio.run(main()) == "one"


def test_commands_may_take_long() -> None:
    assert _protocol.default_timeout("shell/run") == _protocol.SANDBOX_TIMEOUT_MAX
    assert _protocol.default_timeout("file/stat") == 120
    assert _protocol.longest_timeout("vscode/chat") == _protocol.TIMEOUT_MAX
