"""Nets for tests of the runner, and functions that run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent
from typing import Optional

from bridge import Daemon, clean_environment, run

# The format of the original engine: places, transitions and arcs in lists beside each other.
FLAT = """\
pnml:
  net:
    - id: n
      page:
        - id: p
          place:
            - id: a
              evolve:
                initialTokens:
                  - value: 1
                  - value: two
            - id: b
          transition:
            - id: move
              evolve:
                inscriptions:
                  - id: tell
                    language: python
                    kind: expression
                    source: inline
                    code: |
{code}
          arc:
            - id: in1
              source: a
              target: move
            - id: out1
              source: move
              target: b
"""


def flat(code: str) -> str:
    return FLAT.format(code=indent(dedent(code).strip("\n"), " " * 22))


def run_net(
    net: Path, text: str, *options: str, daemon: Optional[Daemon] = None
) -> subprocess.CompletedProcess[str]:
    net.write_text(dedent(text), encoding="utf-8")
    command = [sys.executable, "-m", "vscode_bridge.net", net.name, *options]
    return run(command, daemon.inner_environment() if daemon else clean_environment(), net.parent)


def check(net: Path, text: str, *options: str, out: str, code: int = 0) -> str:
    """Runs a net, checks its output, and returns stderr."""
    done = run_net(net, text, *options)
    assert (done.stdout, done.returncode) == (out, code), done.stderr
    return done.stderr
