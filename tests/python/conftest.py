"""Fixtures: a real daemon, and this process inside of its run."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Callable, Iterator, List

import pytest

from vscode_bridge import Client, _api

from bridge import VARIABLES, Daemon

# In the background of a script, Ctrl-C is ignored, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def start_daemon() -> Iterator[Callable[..., Daemon]]:
    """Starts daemons with given arguments and ends them after the test."""
    daemons: List[Daemon] = []

    def start(*arguments: str) -> Daemon:
        daemons.append(Daemon(*arguments))
        return daemons[-1]

    yield start
    for daemon in daemons:
        print(f"daemon's log:\n{daemon.process.stderr()}")
        daemon.end()


@pytest.fixture
def daemon(start_daemon: Callable[..., Daemon]) -> Daemon:
    """A daemon with default settings."""
    return start_daemon()


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    """A client of that daemon."""
    with Client(daemon.endpoint) as client:
        yield client


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a sandbox. Its shells find no start-up files."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "work").mkdir()
    return (tmp_path / "work").resolve()


@pytest.fixture
def sandbox_daemon(workspace: Path, start_daemon: Callable[..., Daemon]) -> Daemon:
    """A daemon with a sandbox."""
    return start_daemon("--sandbox", str(workspace))


@pytest.fixture
def no_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bridge in the environment."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def enter(monkeypatch: pytest.MonkeyPatch, no_bridge: None) -> Iterator[Callable[[Daemon], Daemon]]:
    """Sets a daemon's variables in this process: the module's functions use it."""

    def enter(daemon: Daemon) -> Daemon:
        for name, value in daemon.env.items():
            monkeypatch.setenv(name, value)
        return daemon

    yield enter
    _api.client.close()


@pytest.fixture
def inside(daemon: Daemon, enter: Callable[[Daemon], Daemon]) -> Daemon:
    """A daemon with default settings that the module's functions use."""
    return enter(daemon)


@pytest.fixture
def inside_sandbox(sandbox_daemon: Daemon, enter: Callable[[Daemon], Daemon]) -> Daemon:
    """A daemon with a sandbox that the module's functions use."""
    return enter(sandbox_daemon)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """The path for the net of a test."""
    return tmp_path / "net.evolve.yaml"
