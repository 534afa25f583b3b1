"""How calls and processes end early: Ctrl-C, interpreter exit, closing."""

from __future__ import annotations

import gc
import sys

import pytest

from vscode_bridge import BridgeCancelled, Client

from bridge import Daemon, chat_rule, run, slow_rule

INTERRUPTED = """
import vscode_bridge
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
{after}
"""


@pytest.mark.parametrize(
    "call",
    [
        'vscode_bridge.chat("Anybody?")',
        'list(vscode_bridge.chat("Anybody?", stream=True))',
        'vscode_bridge.Client().execute_command("wait", timeout=60)',
    ],
)
def test_ctrl_c_ends_the_call_and_cancels_it_at_the_host(daemon: Daemon, call: str) -> None:
    host = daemon.host(slow_rule())
    process = daemon.python(INTERRUPTED.format(call=call, after="input()"))
    request = host.event("request")
    process.interrupt()
    assert process.line("interruption") == "interrupted"
    # The process still lives, so the call was cancelled and not the connection.
    host.event("cancel", id=request["id"])
    assert process.popen.poll() is None


def test_the_connection_is_good_after_ctrl_c(daemon: Daemon) -> None:
    host = daemon.host(slow_rule("vscode/executeCommand"), chat_rule())
    process = daemon.python(
        INTERRUPTED.format(
            call='vscode_bridge.execute_command("wait")',
            after='print(vscode_bridge.chat("after"))',
        )
    )
    host.event("request")
    process.interrupt()
    assert process.line("interruption") == "interrupted"
    assert process.line("answer") == "You said: after"
    assert process.wait() == 0


PENDING_AT_EXIT = """
import sys, threading, vscode_bridge
{start}
sys.stdin.readline()
print("leaving", flush=True)
"""


@pytest.mark.parametrize(
    "start",
    [
        'threading.Thread(target=vscode_bridge.chat, args=("Anybody?", 600), daemon=True).start()',
        'pending = vscode_bridge.chat_async("Anybody?", 600)',
        'stream = vscode_bridge.chat("Anybody?", 600, stream=True)',
        'client = vscode_bridge.Client(); pending = client.chat_async("Anybody?", 600)',
    ],
)
def test_a_pending_call_does_not_hold_up_the_exit(daemon: Daemon, start: str) -> None:
    host = daemon.host(slow_rule())
    process = daemon.python(PENDING_AT_EXIT.format(start=start))
    request = host.event("request")
    process.type("\n")
    process.line("last line", lambda line: line == "leaving")
    assert process.wait() == 0  # it gives up long before the timeout of the call
    assert process.stderr() == ""
    host.event("cancel", id=request["id"])


def test_exit_says_goodbye(daemon: Daemon, client: Client) -> None:
    daemon.host(chat_rule())
    client.chat("here")
    process = daemon.python(
        "import vscode_bridge; vscode_bridge.chat('x'); print('done', flush=True)"
    )
    assert process.line("end") == "done"
    assert process.wait() == 0
    assert client.request("bridge/status")["clients"] == 1
    assert process.stderr() == ""


def test_a_call_in_an_exit_handler_works(daemon: Daemon) -> None:
    daemon.host(chat_rule())
    process = daemon.python(
        "import atexit, vscode_bridge\n"
        "vscode_bridge.chat('x')\n"
        "atexit.register(lambda: print(vscode_bridge.chat('bye')))\n"
    )
    assert process.line("answer") == "You said: bye"
    assert process.wait() == 0


def test_a_call_after_the_goodbye_is_answered_or_explained(daemon: Daemon) -> None:
    daemon.host(chat_rule())
    process = daemon.python(
        "import atexit\n"
        "@atexit.register\n"
        "def last():\n"  # registered before ours, so it runs after it
        "    try:\n"
        "        print(vscode_bridge.chat('bye'))\n"
        "    except vscode_bridge.BridgeUnavailable as error:\n"
        "        print(error)\n"
        "import vscode_bridge\n"
        "vscode_bridge.chat('x')\n"
    )
    # Newer Pythons start no thread at that time.
    line = process.line("last words")
    assert line == "You said: bye" or line.startswith("The bridge cannot be used now"), line
    assert process.wait() == 0
    assert process.stderr() == ""


def test_closing_a_client_ends_its_calls(daemon: Daemon) -> None:
    host = daemon.host(slow_rule())
    client = Client(daemon.endpoint)
    pending = client.chat_async("Anybody?", 60)
    host.event("request")
    client.close()
    with pytest.raises(BridgeCancelled, match="closed"):
        pending.wait(5)
    host.event("cancel")


def test_a_forgotten_client_hangs_up(daemon: Daemon) -> None:
    daemon.host(chat_rule())
    with Client(daemon.endpoint) as watcher:
        other = Client(daemon.endpoint)
        other.chat("here")
        assert watcher.request("bridge/status")["clients"] == 2
        background = other._background
        assert background is not None
        del other
        gc.collect()
        background._thread.join(5)
        assert not background._thread.is_alive()
        assert watcher.request("bridge/status")["clients"] == 1


def test_development_mode_finds_nothing_left_open(daemon: Daemon) -> None:
    daemon.host(chat_rule())
    code = (
        "import asyncio, vscode_bridge as v\n"
        "v.chat('x')\n"
        "with v.Client() as c: c.chat('y')\n"
        "async def main():\n"
        "    async with v.AsyncClient() as c: await c.chat('z')\n"
        "asyncio.run(main())\n"
        "print('done')\n"
    )
    done = run([sys.executable, "-X", "dev", "-W", "error", "-c", code], daemon.inner_environment())
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
