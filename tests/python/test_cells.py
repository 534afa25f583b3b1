"""Cells of agents through a real daemon and a real kernel."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Callable, List

from vscode_bridge import agent

from bridge import ROOT, Daemon


def test_cells(
    start_daemon: Callable[..., Daemon], enter: Callable[[Daemon], Daemon], workspace: Path
) -> None:
    setup = subprocess.run(
        [ROOT / "scripts" / "setup-kernel"], stdout=subprocess.PIPE, text=True, check=True
    )
    enter(start_daemon("--sandbox", str(workspace), "--kernel-python", setup.stdout.strip()))
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
    assert f"[{much.lost} bytes of output were left out here.]" in much.content
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
