"""Cells through a real daemon and a real kernel, as actions of agents and as a tool."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Callable, List

import pytest

from vscode_bridge import agent
from vscode_bridge.tools import AsyncTools, Media, Tools

from bridge import ROOT, Daemon


@pytest.fixture
def with_kernel(
    start_daemon: Callable[..., Daemon], enter: Callable[[Daemon], Daemon], workspace: Path
) -> Daemon:
    """A daemon with a sandbox that runs cells."""
    setup = subprocess.run(
        [ROOT / "scripts" / "setup-kernel"], stdout=subprocess.PIPE, text=True, check=True
    )
    return enter(start_daemon("--sandbox", str(workspace), "--kernel-python", setup.stdout.strip()))


@pytest.mark.usefixtures("with_kernel")
def test_cells() -> None:
    pieces: List[str] = []
    code = "x = 6; print('x is', x)"
    cell = agent.ipython(code, on_output=pieces.append)
    assert (cell.content, cell.code, cell.image_urls) == ("x is 6", code, [])
    assert "".join(pieces) == "x is 6\n"
    assert agent.ipython("x * 7").content == "42"
    failed = agent.ipython("1/0")
    assert "ZeroDivisionError" in failed.content
    assert (cell.ok, failed.ok) == (True, False)
    much = agent.ipython("print('x' * 20_000_000)")
    assert f"[{much.lost} bytes of output were omitted here.]" in much.content
    assert (failed.lost, much.lost > 5_000_000) == (0, True)
    picture = "from IPython.display import Image; Image(data=b'\\xff\\xd8\\xff1', format='jpeg')"
    assert agent.ipython(picture).images == [agent.Media("image/jpeg", b"\xff\xd8\xff1")]
    assert "new kernel" in agent.restart_kernel().content
    assert agent.ipython("'x' in globals()").content == "False"

    async def again() -> str:
        async with agent.AsyncAgent() as same:
            await same.ipython("x = 1")
            await same.restart_kernel()
            return (await same.ipython("'x' in globals()")).content

    assert asyncio.run(again()) == "False"


@pytest.mark.usefixtures("with_kernel")
def test_cells_of_a_shell() -> None:
    pieces: List[str] = []
    with Tools() as tools:
        shell = tools.shell()
        shell.run("mkdir sub; cd sub; export NAME=World")
        code = "import os; x = 6; print(os.environ['NAME'])"
        cell = shell.cell(code, on_output=pieces.append)
        assert (cell.text.rstrip(), cell.ended, cell.ok) == ("World", "finished", True)
        assert "".join(pieces).rstrip() == "World"
        assert cell.details["cwd"].endswith("/sub")
        assert shell.cell("x * 7").text.rstrip() == "42"
        assert tools.shell("other").cell("'x' in globals()").text.rstrip() == "False"
        failed = shell.cell("1/0")
        assert (failed.ended, failed.ok) == ("raised", False)
        assert "ZeroDivisionError" in failed.text
        assert shell.cell("import time; time.sleep(1000)", limit=0.5).ended == "timedOut"
        much = shell.cell("print('x' * 20_000_000)")
        assert much.omitted > 5_000_000
        picture = (
            "from IPython.display import Image; Image(data=b'\\xff\\xd8\\xff1', format='jpeg')"
        )
        assert shell.cell(picture).pictures == [Media("image/jpeg", b"\xff\xd8\xff1")]
        shell.restart_kernel()
        assert shell.cell("'x' in globals()").text.rstrip() == "False"
        assert shell.cell("1", restart=True).new_kernel == "restarted"

    async def again() -> str:
        async with AsyncTools() as tools:
            return (await tools.shell().cell("6 * 7")).text

    assert asyncio.run(again()).rstrip() == "42"
