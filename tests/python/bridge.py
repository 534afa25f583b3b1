"""The real parts, for tests: `bridge-daemon serve`, `bridge-client host`, and Python processes.

Everything that is started here is ended here. Every wait has a limit and says what it waited for.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Callable, Dict, List, Optional, Sequence

from vscode_bridge import Endpoint

ROOT = Path(__file__).resolve().parents[2]

LIMIT = 20.0 * float(os.environ.get("RUN_BRIDGE_TEST_TIMEOUT_FACTOR", "1"))
"""Timeout of every wait in seconds. Slow machines raise RUN_BRIDGE_TEST_TIMEOUT_FACTOR."""

VARIABLES = [
    f"{prefix}_{name}"
    for prefix in ("RUN_BRIDGE", "EVOLVE_RUN_BRIDGE")
    for name in ("ADDR", "TOKEN", "SESSION")
]


def program(name: str) -> str:
    """The path of one of our programs. Fails with a message that says how to build it."""
    variable = name.upper().replace("-", "_")
    path = Path(os.environ.get(variable) or ROOT / "target" / "debug" / name)
    if not os.access(path, os.X_OK):
        raise AssertionError(
            f"{path} is missing: build it with `cargo build --bin {name}` in {ROOT}, "
            f"or set {variable} to where it is."
        )
    return str(path)


def clean_environment(**more: str) -> Dict[str, str]:
    """The environment of this process without a bridge, with the variables that a test adds."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**kept, "PYTHONUNBUFFERED": "1", **more}


class Lines:
    """Lines of a stream, read in a thread so that waiting for one can have a limit.

    The thread ends, and closes the stream, at its end or at the line `END`.
    """

    END = "end of lines\n"

    def __init__(self, stream: IO[str], name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[Optional[str]] = queue.SimpleQueue()
        self.seen: List[str] = []
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                if line == self.END:
                    break
                self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    def next(self, what: str, wanted: Callable[[str], object] = lambda line: True) -> str:
        """The next line that is wanted. Lines before it are skipped."""
        while True:
            try:
                line = self._queue.get(timeout=LIMIT)
            except queue.Empty:
                raise AssertionError(self._missing(what, f"within {LIMIT:g}s")) from None
            if line is None:
                self._queue.put(None)
                raise AssertionError(self._missing(what, "before the end"))
            self.seen.append(line)
            if wanted(line):
                return line

    def join(self) -> None:
        self._thread.join(LIMIT)
        assert not self._thread.is_alive(), f"{self._name} did not end within {LIMIT:g}s"

    def _missing(self, what: str, when: str) -> str:
        seen = "\n".join(self.seen) or "(nothing)"
        return f"{self._name}: no {what} {when}; lines so far:\n{seen}"


class Process:
    """A child process. Its stderr goes to a file that is shown when a wait fails."""

    def __init__(
        self, command: Sequence[str], directory: Path, env: Optional[Dict[str, str]] = None
    ) -> None:
        self.name = Path(command[0]).name
        self._stderr = tempfile.TemporaryFile("w+", dir=directory)  # noqa: SIM115
        self.popen = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            env=env if env is not None else clean_environment(),
            cwd=directory,
            start_new_session=True,
        )
        assert self.popen.stdout is not None
        self.stdout = Lines(self.popen.stdout, self.name)

    @property
    def pid(self) -> int:
        return self.popen.pid

    def line(self, what: str, wanted: Callable[[str], object] = lambda line: True) -> str:
        try:
            return self.stdout.next(what, wanted)
        except AssertionError as error:
            raise AssertionError(f"{error}\nstderr:\n{self.stderr()}") from None

    def stderr(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read()

    def wait(self) -> int:
        try:
            return self.popen.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"{self.name} did not end within {LIMIT:g}s; stderr:\n{self.stderr()}"
            ) from None

    def type(self, text: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(text)
        self.popen.stdin.flush()

    def interrupt(self) -> None:
        self.popen.send_signal(signal.SIGINT)

    def kill(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait(LIMIT)

    def end(self) -> None:
        """Kills the process and its forked children, and closes its streams."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.kill()
        assert self.popen.stdin is not None
        with suppress(BrokenPipeError):  # the process had not read all of its input
            self.popen.stdin.close()
        self.stdout.join()
        self._stderr.close()


class Fifo:
    """A FIFO that a scripted host or a command reads, so that it waits until the test opens it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)

    def open(self) -> None:
        # Opening for writing waits until the reader has opened it. The reader reads to the end.
        opened = threading.Event()

        def pass_through() -> None:
            with open(self.path, "w"):
                opened.set()

        threading.Thread(target=pass_through, daemon=True).start()
        assert opened.wait(LIMIT), f"nobody opened the FIFO for reading within {LIMIT:g}s"


class Host:
    """A scripted host: `bridge-client host` with these `rules`."""

    def __init__(self, daemon: Daemon, rules: List[Dict[str, Any]], runtime_id: str) -> None:
        directory = Path(tempfile.mkdtemp(dir=daemon.directory))
        rules_file = directory / "rules.json"
        script = {"runtimeId": runtime_id, "title": "scripted", "rules": rules}
        rules_file.write_text(json.dumps(script))
        log = directory / "log"
        os.mkfifo(log)
        # Open both ends here, so that neither the host nor the test waits for the other.
        self._log_file = os.open(log, os.O_RDWR)
        self._log = Lines(os.fdopen(self._log_file, "r", encoding="utf-8"), "the host's log")
        command = [program("bridge-client"), "host", "--session", daemon.session]
        command += ["--rules", str(rules_file), "--log", str(log)]
        self.process = Process(command, directory, daemon.outer_environment())
        self.process.line("ready line of the host", lambda line: "runtimeId" in line)

    def event(self, kind: str, **members: Any) -> Dict[str, Any]:
        """The next event of the log: `request`, `cancel` or `answer`, with these members."""

        def wanted(line: str) -> bool:
            event = json.loads(line)
            return event["event"] == kind and all(event.get(k) == v for k, v in members.items())

        event: Dict[str, Any] = json.loads(self._log.next(f"{kind} {members or ''}", wanted))
        return event

    def request(self, method: str) -> Dict[str, Any]:
        """The parameters of the next request for `method`."""
        params: Dict[str, Any] = self.event("request", method=method)["params"]
        return params

    def events_so_far(self) -> List[Dict[str, Any]]:
        """The lines of the log that `event` and `request` have read so far."""
        return [json.loads(line) for line in self._log.seen]

    def end(self) -> None:
        self.process.end()
        os.write(self._log_file, f"\n{Lines.END}".encode())
        self._log.join()


class Daemon:
    """`bridge-daemon serve` with directories of its own."""

    def __init__(self, *arguments: str) -> None:
        self._sandboxed = "--sandbox" in arguments
        # A short path, because the path of a socket may have only about 100 characters.
        self.directory = Path(tempfile.mkdtemp(prefix="rb-"))
        self.runtime = self.directory / "run"
        self.runtime.mkdir(mode=0o700)
        self._hosts: List[Host] = []
        self._processes: List[Process] = []
        self.process = Process(
            [program("bridge-daemon"), "serve", *arguments],
            self.directory,
            self.outer_environment(),
        )
        ready = json.loads(self.process.line("ready line of the daemon"))
        self.session: str = ready["session"]
        self.token: str = ready["token"]
        self.host_token: str = ready["hostToken"]
        self.env: Dict[str, str] = ready["env"]
        self.endpoint = Endpoint(ready["addr"], ready["token"], ready["session"])

    def outer_environment(self) -> Dict[str, str]:
        """For programs outside of the run, which find the daemon by its connection file."""
        return clean_environment(XDG_RUNTIME_DIR=str(self.runtime))

    def inner_environment(self) -> Dict[str, str]:
        """For programs inside of the run."""
        return {**self.outer_environment(), **self.env}

    def host(self, *rules: Dict[str, Any], runtime_id: str = "scripted") -> Host:
        host = Host(self, list(rules), runtime_id)
        self._hosts.append(host)
        return host

    def fifo(self, name: str = "fifo") -> Fifo:
        return Fifo(self.directory / name)

    def python(self, code: str, *arguments: str) -> Process:
        """A Python process inside of the run."""
        command = [sys.executable, "-c", code, *arguments]
        process = Process(command, self.directory, self.inner_environment())
        self._processes.append(process)
        return process

    def end(self) -> None:
        for process in self._processes:
            process.end()
        for host in self._hosts:
            host.end()
        if self._sandboxed:
            # Shells outlive a daemon that is killed, but not one that ends normally.
            self.process.popen.terminate()
            self.process.wait()
        self.process.end()
        shutil.rmtree(self.directory)


def run(
    command: Sequence[str], env: Dict[str, str], directory: Optional[Path] = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end. At the timeout, fails and shows its output."""
    return subprocess.run(
        list(command),
        env=env,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def chat_rule(response: str = "You said: ${message}", **members: Any) -> Dict[str, Any]:
    """A host's rule for `vscode/chat`."""
    result = {"response": response, "conversationId": "c1"}
    return {"method": "vscode/chat", "result": result, **members}


def slow_rule(method: str = "*", **members: Any) -> Dict[str, Any]:
    """A rule for a host that answers later than any test takes."""
    return {"method": method, "delayMs": 600_000, "result": {}, **members}
