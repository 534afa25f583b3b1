"""Actions of agents through a real daemon and a real tmux."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any, Awaitable, Callable, List

import pytest

import vscode_bridge
from vscode_bridge import AsyncClient, BridgeCancelled, Client, RequestRefused, _protocol, agent
from vscode_bridge.tools import Tools

from bridge import LIMIT, Daemon, Fifo

pytestmark = pytest.mark.usefixtures("inside_sandbox")


@pytest.fixture
def fifo(workspace: Path) -> Fifo:
    """A FIFO for commands. When it opens, the command that reads it has started."""
    return Fifo(workspace / "fifo")


# Ends by Ctrl-C only, and has started when its FIFO opens: a key that comes while bash is still
# starting the command would reach only bash.
ENDLESS = "sh -c 'cat fifo; exec sleep 1000'"


def leave_running(daemon: Daemon, command: str) -> None:
    """Starts a command, and disconnects when it has printed something."""
    printed = threading.Event()
    with Client(daemon.endpoint) as client:
        one = agent.Agent(client=client)

        def run() -> None:
            with pytest.raises(BridgeCancelled, match="closed"):
                one.run(command, blocking=True, on_output=lambda text: printed.set())

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert printed.wait(LIMIT), f"{command} printed nothing within {LIMIT:g}s"
    thread.join(LIMIT)
    assert not thread.is_alive(), f"the wait for {command} did not end within {LIMIT:g}s"


def last_exit_code() -> str:
    """The exit code of the latest command, which was interrupted and may still be ending."""
    while True:
        told = agent.run("echo $?", timeout=LIMIT)
        if "NOT executed" not in told.note:
            return told.content
        assert agent.wait(timeout=LIMIT).finished, f"the command did not end within {LIMIT:g}s"


def test_commands(workspace: Path) -> None:
    first = agent.run("mkdir sub; cd sub; x=kept; echo 'a  b'; (exit 3)", action_id="mine")
    assert (first.content, first.exit_code, first.cwd) == ("a  b", 3, str(workspace / "sub"))
    assert (first.finished, first.ok, first.raw["cause"]) == (True, False, "mine")
    assert "exit code 3" in first.note
    second = agent.run("echo $x", timeout=LIMIT)
    assert (second.ok, second.content, second.command) == (True, "kept", "echo $x")
    apart = agent.run('echo "[$x]"; pwd', fresh=True, cwd=str(workspace))
    assert apart.content == f"[]\n{workspace}"
    assert "truncated" in agent.run("seq 1 20000").content
    assert len(agent.run("seq 1 20000", hidden=True).content.splitlines()) == 20_000


def test_files(workspace: Path) -> None:
    assert agent.write("notes.txt", "one\ntwo").path == str(workspace / "notes.txt")
    assert agent.read("notes.txt").content == "one\ntwo\n"
    assert agent.read("notes.txt", start=1).content == "two\n"
    assert agent.view("notes.txt", first_line=2).content.endswith(":\n     2\ttwo\n")
    assert "notes.txt" in agent.view(".").content
    agent.write("notes.txt", "2", start=1, end=2)
    assert "-one\n+1" in agent.replace("notes.txt", "one", "1").diff
    agent.insert("notes.txt", 0, "0")
    assert (workspace / "notes.txt").read_text() == "0\n1\n2\n"
    assert agent.undo("notes.txt").path == "notes.txt"
    assert (workspace / "notes.txt").read_text() == "1\n2\n"
    assert agent.create("new", "exactly").kind == "edit"
    assert (workspace / "new").read_text() == "exactly"
    assert agent.mkdir("a/b").kind == "success"
    agent.rmdir("a/b")
    agent.rm("new")
    agent.rm("a", recursive=True)
    assert [path.name for path in workspace.iterdir()] == ["notes.txt"]
    edit = {"command": "str_replace", "path": "notes.txt", "old_str": "2", "new_str": "3"}
    assert isinstance(agent.execute("edit", edit), agent.EditObservation)


@pytest.mark.parametrize(
    ("act", "exception", "message"),
    [
        (lambda: agent.read("missing"), agent.NotFound, "not found"),
        (lambda: agent.read("/etc/passwd"), agent.OutsideWorkspace, "use a path inside"),
        (lambda: agent.create("file", "x"), agent.Invalid, "already exists"),
        (lambda: agent.replace("file", "none", "x"), agent.Invalid, "did not appear"),
        (lambda: agent.run("echo a\necho b"), agent.Invalid, "multiple commands"),
        (lambda: agent.execute("run", {"bogus": 1}), agent.Invalid, "bogus"),
        (lambda: agent.browse("missing.html"), agent.NotFound, "does not exist"),
    ],
)
def test_what_fails_says_why(
    workspace: Path,
    act: Callable[[], object],
    exception: "type[agent.ActionError]",
    message: str,
) -> None:
    (workspace / "file").write_text("text")
    with pytest.raises(exception, match=message):
        act()


def test_a_call_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(RequestRefused, match="use one of run") as caught:
        agent.execute("dance", {})
    assert caught.value.data["reason"] == "unknownAction"
    with pytest.raises(RequestRefused, match="no action"):
        agent.cancel("nobody")


def test_a_command_goes_on_and_is_fed(inside_sandbox: Daemon) -> None:
    leave_running(inside_sandbox, "echo ready; read x; echo got $x")
    busy = agent.run("echo no")
    assert (busy.exit_code, busy.cwd, busy.finished) == (None, None, False)
    assert "NOT executed" in busy.note
    pieces: List[str] = []
    fed = agent.send_input("it", timeout=LIMIT, on_output=pieces.append)
    assert fed.ok
    assert fed.content.endswith("got it")
    assert "got it" in "".join(pieces)


def test_a_command_goes_on_and_is_awaited_again(inside_sandbox: Daemon, fifo: Fifo) -> None:
    leave_running(inside_sandbox, "echo ready; cat fifo; echo over")
    fifo.open()
    assert agent.wait(timeout=LIMIT).content.endswith("over")


def test_a_command_goes_on_and_is_interrupted(inside_sandbox: Daemon) -> None:
    leave_running(inside_sandbox, "sh -c 'echo ready; exec sleep 1000'")
    assert agent.interrupt(timeout=LIMIT).exit_code == 130


def test_output_comes_whole_and_in_order() -> None:
    expected = "".join(f"{n}\r\n" for n in range(1, 3001)) + "endeü"
    for fresh in (False, True):
        pieces: List[str] = []
        command = "seq 1 3000; printf 'ende\\303\\274'"
        assert agent.run(command, fresh=fresh, on_output=pieces.append).ok
        assert "".join(pieces) == expected


def test_a_callback_that_fails_interrupts_the_command() -> None:
    def on_output(text: str) -> None:
        raise ValueError(text)

    with pytest.raises(ValueError, match="ready"):
        agent.run("sh -c 'echo ready; exec sleep 1000'", on_output=on_output)
    assert last_exit_code() == "130"


INTERRUPTED = """
from vscode_bridge import agent
try:
    agent.run({command!r}, on_output={on_output})
except KeyboardInterrupt:
    print("interrupted", flush=True)
input()
"""


@pytest.mark.parametrize("on_output", ["None", "print"])
def test_ctrl_c_interrupts_the_command(inside_sandbox: Daemon, fifo: Fifo, on_output: str) -> None:
    code = INTERRUPTED.format(command=ENDLESS, on_output=on_output)
    process = inside_sandbox.python(code)
    fifo.open()
    process.interrupt()
    assert process.line("interruption") == "interrupted"
    # The process still lives, so the command was cancelled and not the connection.
    assert last_exit_code() == "130"
    assert process.popen.poll() is None


def test_an_uncaught_ctrl_c_interrupts_the_command_too(inside_sandbox: Daemon, fifo: Fifo) -> None:
    process = inside_sandbox.python(f"from vscode_bridge import agent; agent.run({ENDLESS!r})")
    fifo.open()
    process.interrupt()
    assert process.wait() != 0
    assert last_exit_code() == "130"


def test_an_action_is_cancelled_by_its_name(fifo: Fifo) -> None:
    ends: List[BridgeCancelled] = []

    def run() -> None:
        with pytest.raises(BridgeCancelled) as caught:
            agent.run(ENDLESS, action_id="long", blocking=True)
        ends.append(caught.value)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    fifo.open()
    agent.cancel("long")
    thread.join(LIMIT)
    assert ends, f"the cancelled action did not end within {LIMIT:g}s"
    assert ends[0].data["reason"] == "cancelled"
    assert last_exit_code() == "130"


def test_agents_act_side_by_side(workspace: Path, inside_sandbox: Daemon) -> None:
    agent.run("mkfifo pipe; kept=yes")
    with agent.Agent("second") as second, agent.Agent() as same:
        reader = threading.Thread(
            target=lambda: second.run("x=$(cat pipe)", timeout=LIMIT), daemon=True
        )
        reader.start()
        assert same.run("echo $kept > pipe", timeout=LIMIT).ok
        reader.join(LIMIT)
        assert not reader.is_alive(), f"the other agent did not end within {LIMIT:g}s"
        assert repr(second) == "Agent(shell='second')"
    # Their shells keep running until they are closed.
    with Client(inside_sandbox.endpoint) as client:
        again = agent.Agent("second", client=client)
        assert again.run("echo $x").content == "yes"
        again.close()
        assert [shell["shell"] for shell in Tools(client).shells()] == ["agent"]
        assert again.run("echo [$x]; pwd").content == f"[]\n{workspace}"


def test_a_with_block_ends_the_connection_if_it_is_its_own(inside_sandbox: Daemon) -> None:
    with agent.Agent() as own:
        own.run("true")
        assert own._client._background is not None
    assert own._client._background is None
    with Client(inside_sandbox.endpoint) as client:
        with agent.Agent(client=client) as other:
            other.run("true")
        assert client._background is not None

    async def main() -> None:
        async with agent.AsyncAgent() as own:
            await own.run("true")
            assert own._client._connection is not None
        assert own._client._connection is None
        async with AsyncClient(inside_sandbox.endpoint) as client:
            async with agent.AsyncAgent(client=client) as other:
                await other.run("true")
            assert client._connection is not None

    asyncio.run(main())


def run(daemon: Daemon, work: Callable[[agent.AsyncAgent], Awaitable[Any]]) -> None:
    """Runs `work` with an agent for asyncio, within the limit."""

    async def main() -> None:
        async with AsyncClient(daemon.endpoint) as client:
            await asyncio.wait_for(work(agent.AsyncAgent(client=client)), LIMIT)

    asyncio.run(main())


def test_the_same_for_asyncio(inside_sandbox: Daemon) -> None:
    async def work(one: agent.AsyncAgent) -> None:
        pieces: List[str] = []
        ran = await one.run("seq 1 3; (exit 3)", timeout=LIMIT, on_output=pieces.append)
        assert (ran.exit_code, ran.content, "".join(pieces)) == (3, "1\n2\n3", "1\r\n2\r\n3\r\n")
        await one.write("a", "text")
        assert (await one.read("a")).content == "text\n"
        with pytest.raises(agent.NotFound):
            await one.read("missing")
        await one.run("mkfifo pipe")
        async with agent.AsyncAgent("second") as second:
            reading = one.run("cat pipe", timeout=LIMIT)
            writing = second.run("echo through > pipe", timeout=LIMIT)
            assert [ran.content for ran in await asyncio.gather(reading, writing)] == [
                "through",
                "",
            ]
        assert repr(second) == "AsyncAgent(shell='second')"
        await one.close()

    run(inside_sandbox, work)


@pytest.mark.parametrize("streamed", [False, True])
def test_cancelling_the_task_interrupts_the_command(
    inside_sandbox: Daemon, fifo: Fifo, streamed: bool
) -> None:
    async def work(one: agent.AsyncAgent) -> None:
        on_output = print if streamed else None
        task = asyncio.ensure_future(one.run(ENDLESS, on_output=on_output))
        await asyncio.to_thread(fifo.open)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(last_exit_code) == "130"

    run(inside_sandbox, work)


def test_the_functions_are_the_methods() -> None:
    methods = {name for name in dir(agent.Agent) if not name.startswith("_")}
    assert methods == {name for name in agent.__all__ if name[0].islower()}
    for name in agent.__all__:
        assert getattr(agent, name).__doc__, f"{name} has no docstring"
    assert not set(agent.__all__) & set(vscode_bridge.__all__)


def test_actions_may_take_long() -> None:
    assert _protocol.default_timeout("action/execute") == _protocol.TOOL_TIMEOUT_MAX
    assert _protocol.default_timeout("action/cancel") == 120
    assert _protocol.longest_timeout("action/execute") == _protocol.TOOL_TIMEOUT_MAX
