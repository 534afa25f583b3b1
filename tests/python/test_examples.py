"""Runs each example as its first lines say, and checks its output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest

from bridge import ROOT, Daemon, chat_rule, clean_environment, program, run

EXAMPLES = ROOT / "examples"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH on which the examples find our programs and this Python."""
    for name in ("bridge-daemon", "bridge-client"):
        (tmp_path / name).symlink_to(program(name))
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    return f"{tmp_path}{os.pathsep}{os.environ['PATH']}"


def command_of(example: str) -> str:
    """The command in an example's first lines."""
    head = (EXAMPLES / example).read_text(encoding="utf-8")[:800]
    text = re.sub(r"\n#", "\n", head).replace("\\\n", "")
    found = re.search(r"^ +(bridge-daemon run .*)$", text, re.MULTILINE)
    assert found, f"the first lines of {example} do not say how to run it"
    return " ".join(found.group(1).split())


def run_as_told(example: str, path: str) -> "subprocess.CompletedProcess[str]":
    return run(["sh", "-c", command_of(example)], clean_environment(PATH=path), ROOT)


def test_every_example_is_tested_and_listed() -> None:
    kinds = (".py", ".sh", ".yaml")
    files = {file.name for file in EXAMPLES.iterdir() if file.suffix in kinds}
    assert files == {*OUTPUT, "VsCodeInterop.evolve.yaml", "calculator.sh"}
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert files <= set(re.findall(r"^\| \[.*?\]\(([^)]+)\)", page, re.MULTILINE))


OUTPUT: Dict[str, List[str]] = {
    "ask.sh": ["2+2 = 4"],
    "ask.py": [
        "What is 2+2? -> 2+2 = 4",
        "And 4+38? -> 4+38 = 42",
        "     user: What is 2+2?",
        "assistant: 2+2 = 4",
        "     user: And 4+38?",
        "assistant: 4+38 = 42",
    ],
    "threads.py": [f"{n}+{n} = {n + n}" for n in range(1, 9)],
    "stream_asyncio.py": ["What is 2+2? '2+2 = 4'", "What is 20+22? '20+22 = 42'"],
    "agent.py": [
        "exit code 1 and NameError: name 'number' is not defined. Did you mean: 'numbers'?",
        "mean.py:2:    return sum(numbers) / len(number)",
        "mean: 3.0",
        "exit code 0",
    ],
    "ShortenLoop.evolve.yaml": [
        "round 1: The bridge carries questions from a running net to",
        "round 2: The bridge carries questions from",
        "published: The bridge carries questions from",
    ],
}


@pytest.mark.parametrize("example", OUTPUT)
def test_run_as_its_first_lines_say(example: str, path: str) -> None:
    done = run_as_told(example, path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    if example == "stream_asyncio.py":
        printed.sort(reverse=True)  # two chats at once, in either order
        assert printed == sorted(OUTPUT[example], reverse=True)
    else:
        assert printed == OUTPUT[example]


def test_interop_net_with_a_model(path: str) -> None:
    command = command_of("VsCodeInterop.evolve.yaml").replace(
        " run ", " run --chat-command ./examples/calculator.sh "
    )
    done = run(["sh", "-c", command], clean_environment(PATH=path), ROOT)
    assert (done.stdout, done.returncode) == ("Answer: 2+2 = 4\n", 0), done.stderr
    assert "The net asks a question" in done.stderr


def test_interop_net_where_nobody_answers(path: str) -> None:
    # As its first lines say, but without a terminal on which a person could be asked.
    done = run_as_told("VsCodeInterop.evolve.yaml", path)
    assert done.returncode == 0
    assert done.stdout.startswith("Answer: [Copilot blocked: ")


def test_interop_net_with_an_editor(daemon: Daemon) -> None:
    host = daemon.host(
        chat_rule("4", when={"message": "What is 2+2?"}),
        {"method": "vscode/showMessage", "result": {}},
    )
    net = str(EXAMPLES / "VsCodeInterop.evolve.yaml")
    done = run([sys.executable, "-m", "vscode_bridge.net", net], daemon.inner_environment())
    assert (done.stdout, done.returncode) == ("Answer: 4\n", 0), done.stderr
    assert host.request("vscode/showMessage")["level"] == "info"


def test_interop_net_outside_of_a_run() -> None:
    net = str(EXAMPLES / "VsCodeInterop.evolve.yaml")
    done = run([sys.executable, "-m", "vscode_bridge.net", net], clean_environment())
    assert done.returncode == 0
    assert done.stdout.startswith("No answer: VSCode bridge not initialized")
    assert "bridge-daemon run -- python3" in done.stdout


def test_interop_net_keeps_to_what_the_original_engine_parses() -> None:
    """It reads lines, not YAML: list items begin with an id or a value, without flow style."""
    text = (EXAMPLES / "VsCodeInterop.evolve.yaml").read_text(encoding="utf-8")
    outline = re.sub(r"code: \|\n(?: {22}.*\n)+", "code: |\n", text)
    for line in outline.splitlines():
        if line.lstrip().startswith("- "):
            assert re.fullmatch(r" *- (id: [A-Za-z0-9_-]+|value: \w+)", line), line
        elif not line.startswith("#"):
            assert re.fullmatch(r" *\w+:( [\w|]+)?", line), line


def test_ask_says_what_is_missing() -> None:
    done = run([sys.executable, str(EXAMPLES / "ask.py")], clean_environment())
    assert done.returncode == 1
    assert done.stderr.startswith("ask.py: VSCode bridge not initialized")


def test_streamed_text_is_printed_before_the_host_has_finished(daemon: Daemon) -> None:
    questions = ("What is 2+2?", "What is 20+22?")
    fifos = {question: daemon.fifo(f"fifo{n}") for n, question in enumerate(questions)}
    daemon.host(
        *(
            chat_rule(
                "one two",
                when={"message": question},
                progress=[{"text": "one "}],
                fifo=str(fifo.path),
            )
            for question, fifo in fifos.items()
        )
    )
    code = (EXAMPLES / "stream_asyncio.py").read_text(encoding="utf-8")
    process = daemon.python(code)
    first = {process.line("first piece"), process.line("first piece of the other")}
    assert first == {f"{question} 'one '" for question in questions}
    for question, fifo in fifos.items():
        fifo.open()
        assert process.line("rest") == f"{question} 'two'"
    assert process.wait() == 0
