"""Many requests at once: threads, processes, fork."""

from __future__ import annotations

import os
import threading
from typing import List

import pytest

import vscode_bridge
from vscode_bridge import Client, _api

from bridge import LIMIT, Daemon, chat_rule, slow_rule


def in_threads(count: int, work: "object") -> List[BaseException]:
    """Runs `work(number)` in that many threads, and returns the exceptions."""
    raised: List[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)  # type: ignore[operator]
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive(), f"a thread was not done within {LIMIT:g}s"
    return raised


def test_calls_of_several_threads_overlap(daemon: Daemon, client: Client) -> None:
    fifo = daemon.fifo()
    host = daemon.host(chat_rule(when={"message": "0"}, fifo=str(fifo.path)), chat_rule())
    answers: List[str] = []
    held = threading.Thread(target=lambda: answers.append(client.chat("0")), daemon=True)
    held.start()
    host.event("request", method="vscode/chat")
    # While the first request waits at the host, others are answered.
    assert in_threads(3, lambda n: client.chat(f"other {n}")) == []
    assert answers == []
    fifo.open()
    held.join(LIMIT)
    assert answers == ["You said: 0"]


def test_four_threads_of_a_hundred_calls(inside: Daemon) -> None:
    inside.host(chat_rule())

    def work(thread: int) -> None:
        for number in range(100):
            text = f"{thread}/{number}"
            assert vscode_bridge.chat(text) == f"You said: {text}"

    assert in_threads(4, work) == []
    # All requests share one connection. The connection of the host does not count as a client.
    assert _api._module_bridge.request("bridge/status")["clients"] == 1


def test_large_messages_of_several_threads(daemon: Daemon, client: Client) -> None:
    daemon.host(chat_rule("${message}"))

    def work(thread: int) -> None:
        text = f"{thread}" * 4_000_000
        assert client.chat(text) == text

    assert in_threads(8, work) == []


SCRIPT = """
import sys, vscode_bridge
name = sys.argv[1]
for number in range(20):
    assert vscode_bridge.chat(f"{name}/{number}") == f"You said: {name}/{number}"
print("done")
"""


def test_eight_processes(daemon: Daemon) -> None:
    daemon.host(chat_rule())
    processes = [daemon.python(SCRIPT, str(number)) for number in range(8)]
    for process in processes:
        assert process.line("end of a process") == "done"
        assert process.wait() == 0


FORK = """
import os, sys, threading
import vscode_bridge

assert vscode_bridge.chat("parent") == "You said: parent"
held = threading.Thread(target=lambda: print(vscode_bridge.chat("held"), flush=True))
held.start()
print("started", flush=True)
sys.stdin.readline()
child = os.fork()
if child == 0:
    assert vscode_bridge.chat("child") == "You said: child"
    print("child done", flush=True)
    sys.exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert vscode_bridge.chat("parent again") == "You said: parent again"
print("parent done", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_opens_its_own_connection(daemon: Daemon) -> None:
    fifo = daemon.fifo()
    host = daemon.host(chat_rule(when={"message": "held"}, fifo=str(fifo.path)), chat_rule())
    process = daemon.python(FORK)
    process.line("start", lambda line: line == "started")
    while host.request("vscode/chat")["message"] != "held":
        pass
    # Fork while another thread of the parent waits for an answer.
    process.type("\n")
    assert process.line("child's end") == "child done"
    assert process.line("parent's end") == "parent done"
    fifo.open()
    assert process.line("the held answer") == "You said: held"
    assert process.wait() == 0
    assert "Traceback" not in process.stderr()
    assert "Exception" not in process.stderr()


FORK_UNDER_LOCK = """
import os, threading
import vscode_bridge, vscode_bridge._client

vscode_bridge.chat("parent")
vscode_bridge._client._lock.acquire()  # as if another thread were just starting a request
child = os.fork()
if child == 0:
    print(vscode_bridge.chat("child"), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_lock_held_during_fork_does_not_hold_up_the_child(daemon: Daemon) -> None:
    daemon.host(chat_rule())
    process = daemon.python(FORK_UNDER_LOCK)
    assert process.line("child's answer") == "You said: child"
    assert process.line("child's status") == "0"


ORPHAN = """
import os, sys, vscode_bridge
vscode_bridge.chat_async("held")
print("asked", flush=True)
sys.stdin.readline()
if os.fork() == 0:
    print("forked", flush=True)
    sys.stdin.readline()
    os._exit(0)
sys.stdin.readline()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_does_not_keep_its_parents_connection(daemon: Daemon) -> None:
    host = daemon.host(slow_rule())
    process = daemon.python(ORPHAN)
    assert process.line("question") == "asked"
    request = host.event("request")
    process.type("\n")
    assert process.line("fork") == "forked"
    process.popen.kill()
    # The child lives, but the connection ended with the parent, and so did the call.
    host.event("cancel", id=request["id"])
    process.type("\n")


MULTIPROCESSING = """
import multiprocessing, vscode_bridge

def ask(number):
    return vscode_bridge.chat(str(number))

if __name__ == "__main__":
    assert vscode_bridge.chat("parent") == "You said: parent"
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert pool.map(ask, range(20)) == [f"You said: {n}" for n in range(20)]
    print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_pool_of_forked_workers(daemon: Daemon) -> None:
    daemon.host(chat_rule())
    process = daemon.python(MULTIPROCESSING)
    assert process.line("end") == "done"
    assert process.wait() == 0, process.stderr()
