"""Runs each snippet of the package's README as a program."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from pathlib import Path
from typing import Callable, List

import pytest

import vscode_bridge
from vscode_bridge import agent

from bridge import ROOT, Daemon, chat_rule, run

README = (ROOT / "bridge-client" / "python" / "README.md").read_text(encoding="utf-8")

SNIPPETS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)

OUTPUT = [
    ["4"],
    ["17user Remember the number 17"],
    ["None", "0.1.0", "['2', '4']", "6"],
    ["Hello World", "1", "1 Goodbye World", "hello.sh 1"],
    ["1", "2", "3", "0 ['1', '2', '3']", "+seq 2 $1", "not_found", "2", "count"],
    ["not allowed: NotAllowed"],
    ["vscode/chat through the adapter"],
]


def test_there_is_an_output_for_each_snippet() -> None:
    assert len(SNIPPETS) == len(OUTPUT)


@pytest.mark.parametrize(("snippet", "printed"), list(zip(SNIPPETS, OUTPUT)))
def test_snippet(
    start_daemon: Callable[..., Daemon], tmp_path: Path, snippet: str, printed: List[str]
) -> None:
    needs_sandbox = "tools" in snippet or "agent" in snippet
    daemon = start_daemon(*(["--sandbox", str(tmp_path)] if needs_sandbox else []))
    history = [{"role": "user", "content": "Remember the number 17", "timestamp": 1}]
    reload_window = "workbench.action.reloadWindow"
    daemon.host(
        *(
            chat_rule(answer, when={"message": question})
            for question, answer in {
                "What is 2+2?": "4",
                "Remember the number 17": "Yes.",
                "Which number?": "17",
                "1+1?": "2",
                "2+2?": "4",
                "3+3?": "6",
            }.items()
        ),
        {"method": "vscode/showMessage", "result": {}},
        {"method": "vscode/getChatHistory", "result": {"messages": history}},
        {
            "method": "vscode/executeCommand",
            "when": {"command": reload_window},
            "error": {"code": -32054, "message": f"{reload_window} is not allowed"},
        },
        {"method": "vscode/executeCommand", "result": {}},
    )
    done = run([sys.executable, "-c", snippet], daemon.inner_environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == printed


def test_the_table_of_functions_is_true() -> None:
    rows = re.findall(r"^\| `(\w+)\((.*?)\)` \|", README, re.MULTILINE)
    assert {name for name, _ in rows} == {
        name for name in vscode_bridge.__all__ if name.islower() and "bridge" not in name
    }
    for name, parameters in rows:
        signature = inspect.signature(getattr(vscode_bridge, name))
        bare = signature.replace(
            parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
            return_annotation=signature.empty,
        )
        assert str(bare).replace("'", '"').replace(".0", "") == f"({parameters})"


def table_of(first_column: str) -> str:
    """The table whose first column has this name, up to the empty line after it."""
    return README[README.index(f"| {first_column} |") :].partition("\n\n")[0]


def test_the_table_of_exceptions_is_complete() -> None:
    table = table_of("exception")
    names = set(re.findall(r"`(\w+)`", table))
    exceptions = {error.__name__ for error in vscode_bridge.BridgeError.__subclasses__()}
    exceptions |= {error.__name__ for error in vscode_bridge.RequestRefused.__subclasses__()}
    assert names == exceptions


def test_the_table_of_actions_is_complete() -> None:
    table = table_of("functions")
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.MULTILINE)
    functions = [name for names, _ in rows for name in re.findall(r"`(\w+)", names)]
    assert sorted(functions) == sorted(name for name in agent.__all__ if name.islower())
    for _, returned in rows:
        kinds = re.findall(r"`(\w*Observation)`", returned)
        fields = re.findall(r"`([a-z_]+)`", returned.partition(":")[2].partition(";")[0])
        for kind in kinds:
            observation = getattr(agent, kind)
            known = {field.name for field in dataclasses.fields(observation)}
            known |= {name for name, of in vars(observation).items() if isinstance(of, property)}
            assert set(fields) <= known, f"{kind} has no {set(fields) - known}"
