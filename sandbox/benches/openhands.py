"""Two action servers side by side. Started by scripts/bench-openhands with the path of our program."""

import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROUNDS = 15
WARM_UP = 3


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A server of either kind, with a directory of its own."""

    def __init__(self, name: str, command: list[str], home: Path, port: int):
        self.name, self.url = name, f"http://127.0.0.1:{port}"
        environment = {
            **os.environ, "HOME": str(home), "TMUX_TMPDIR": str(home), "NO_CHANGE_TIMEOUT_SECONDS": "30",
        }
        environment.pop("SESSION_API_KEY", None)
        begun = time.perf_counter()
        self.process = subprocess.Popen(
            command, cwd=home, env=environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/alive", timeout=5):
                    break
            except OSError:
                if self.process.poll() is not None or time.perf_counter() - begun > 120:
                    sys.exit(f"{name} did not start")
                time.sleep(0.002)
        self.start = time.perf_counter() - begun

    def run(self, command: str) -> tuple[float, str]:
        body = {"action": {"action": "run", "args": {"command": command}, "timeout": 60}}
        request = urllib.request.Request(
            f"{self.url}/execute_action", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        begun = time.perf_counter()
        with urllib.request.urlopen(request, timeout=65) as answer:
            content = json.load(answer)["content"]
        return time.perf_counter() - begun, content

    def memory(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def main(program: str) -> None:
    program = str(Path(program).resolve())
    top = Path(tempfile.mkdtemp(prefix="oh", dir="/tmp"))
    servers = []
    try:
        for name in ("ours", "theirs"):
            home, port = top / name, free_port()
            work = home / "work"
            work.mkdir(parents=True)
            if name == "ours":
                command = [program, "serve", str(port), "--state", str(home / "state")]
            else:
                command = [
                    sys.executable, "-m", "openhands.runtime.action_execution_server", str(port),
                    "--username", "root", "--user-id", "0", "--no-enable-browser",
                ]
            servers.append(Server(name, [*command, "--working-dir", str(work)], home, port))
        for server in servers:
            print(f"{server.name}: start to /alive {server.start * 1000:.0f} ms")
        for command in ("echo hi", "sleep 0.05; echo hi"):
            times: dict[str, list[float]] = {server.name: [] for server in servers}
            wrong = {server.name: 0 for server in servers}
            # Alternating, so that both see the same machine.
            for number in range(WARM_UP + ROUNDS):
                for server in servers:
                    taken, content = server.run(command)
                    if number >= WARM_UP:
                        times[server.name].append(taken)
                        wrong[server.name] += content != "hi"
            ours, theirs = (statistics.median(times[name]) * 1000 for name in ("ours", "theirs"))
            print(
                f"{command!r}: p50 ours {ours:.1f} ms, theirs {theirs:.1f} ms, ratio {theirs / ours:.0f}; "
                f"wrong answers: ours {wrong['ours']}, theirs {wrong['theirs']}"
            )
        for server in servers:
            print(f"{server.name}: {server.memory():.0f} MiB resident")
    finally:
        for server in servers:
            server.stop()
        socket_path = top / "theirs"
        for found in socket_path.glob("tmux-*/default"):
            subprocess.run(["tmux", "-S", str(found), "kill-server"], check=False, capture_output=True)
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
