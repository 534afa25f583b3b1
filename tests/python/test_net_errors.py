"""Errors of the net runner, with their places in the file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bridge import Daemon, clean_environment, run, slow_rule
from nets import check, flat, run_net


def test_an_exception_names_the_line_of_the_file(net: Path) -> None:
    code = """
        import math

        def inner(number):
            return 1 / number

        print("before")
        inner(0)
        """
    stderr = check(net, flat(code), out="before\n", code=1)
    lines = stderr.splitlines()
    text = net.read_text().splitlines()
    divided = next(n for n, line in enumerate(text, 1) if "1 / number" in line)
    called = next(n for n, line in enumerate(text, 1) if "inner(0)" in line)
    assert lines[0] == (
        f"net.evolve.yaml:{divided}: transition 'move', inscription 'tell': "
        "ZeroDivisionError: division by zero"
    )
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[2] == f'  File "net.evolve.yaml", line {called}, in tell'
    assert lines[3] == "    inner(0)"
    assert "vscode_bridge" not in stderr  # frames of the runner are left out


def test_an_uncaught_bridge_error_is_reported(net: Path) -> None:
    stderr = check(net, flat("vscode_bridge.chat('hi')"), out="", code=1)
    assert "inscription 'tell': BridgeUnavailable: VSCode bridge not initialized" in stderr


def test_an_error_in_an_async_result_is_reported(net: Path, daemon: Daemon) -> None:
    daemon.host({"method": "vscode/chat", "error": {"code": 5, "message": "no model"}})
    text = """
        pnml:
          net:
            place: {id: a, marking: [x]}
            transition:
              id: t
              arcs: {source: a}
              inscriptions: {execMode: async, code: vscode_bridge.chat_async(token)}
        """
    done = run_net(net, text, daemon=daemon)
    assert done.returncode == 1
    assert "transition 't', inscription 'expression': RequestFailed" in done.stderr
    assert "no model" in done.stderr


def test_a_guard_that_returns_nothing(net: Path) -> None:
    stderr = check(net, flat("pass").replace("expression", "guard"), out="", code=1)
    assert (
        "net.evolve.yaml:22: transition 'move', inscription 'tell': TypeError: the guard" in stderr
    )


def test_exit_in_an_inscription_is_an_exit(net: Path) -> None:
    check(net, flat("import sys\nsys.exit(7)"), out="", code=7)


def test_the_limit_on_steps(net: Path) -> None:
    text = """
        pnml:
          net:
            place: {id: a, marking: [x]}
            transition: {id: spin, arcs: [{source: a}, {target: a}]}
        """
    stderr = check(net, text, "--max-steps", "5", out="", code=3)
    assert stderr == "net.evolve.yaml: stopped after 5 steps; allow more with --max-steps\n"


def test_a_net_that_ends_at_the_limit_has_ended(net: Path) -> None:
    assert check(net, flat("pass"), "--max-steps", "2", out="") == ""


def test_nothing_to_fire_is_said(net: Path) -> None:
    text = """
        pnml:
          net:
            place: {id: a}
            transition:
              - {id: t, arcs: {source: a}}
              - id: lonely
        """
    stderr = check(net, text, out="")
    assert stderr.splitlines() == [
        "net.evolve.yaml:7: transition 'lonely' never fires: no arc leads to it",
        "net.evolve.yaml: nothing fired: no transition has a token in each of its input places",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "1: the file is empty; a net starts with 'pnml:'"),
        ("net: 1", "1: 'pnml' is missing here"),
        ("pnml: {}", "1: expected one net in 'net', found 0; put each in a file"),
        ("pnml:\n  net:\n  - id: a\n  - id: b\n", "4: expected one net in 'net', found 2; put"),
        (
            "pnml:\n  net:\n    - id: a\n",
            "3: the net has no transition, so there is nothing to run",
        ),
        ("pnml:\n  net: [1]\n", "2: each item of 'net' must be a mapping with an 'id'"),
        ("pnml:\n  net:\n    a: b: c\n", "3: not valid YAML: mapping values are not allowed here"),
        ("pnml:\n  net:\n    place: {}\n", "3: 'id' is missing here"),
        ("pnml:\n  net:\n    id: a\n    id: b\n", "4: 'id' is given twice"),
        ("pnml:\n  net:\n    place: [{id: a},\n {id: a}]\n", "4: the id 'a' is used twice"),
        (
            "pnml:\n  net:\n    place: {id: a, marking: 3}\n",
            "3: 'marking' must be a list of tokens",
        ),
        (
            "pnml:\n  net:\n    place: {id: a, initialTokens: [{v: 3}]}\n",
            "3: a token is written '- value: ...'",
        ),
        (
            "pnml:\n  net:\n    place: {id: a}\n    transition: {id: t}\n"
            "    arc: {source: a, target: x}",
            "5: the arc names 'x', which is no place or transition",
        ),
        (
            "pnml:\n  net:\n    place: [{id: a}, {id: b}]\n    arc: {source: a, target: b}",
            "4: the arc from 'a' to 'b' must join a place and a transition",
        ),
        (
            "pnml:\n  net:\n    transition:\n      id: t\n      inscription: {language: go}",
            "5: language: go is not supported; use python",
        ),
        (
            "pnml:\n  net:\n    transition:\n      id: t\n      inscriptions: {kind: x, code: x}",
            "5: kind: x is not supported; use expression or guard",
        ),
        (
            "pnml:\n  net:\n    transition: {id: t, inscriptions: {id: i}}",
            "3: 'code' is missing here",
        ),
        (
            "pnml:\n  net:\n    transition:\n      id: t\n      inscriptions:\n        code: [1]",
            "6: 'code' must be text",
        ),
        (
            "pnml:\n  net:\n    transition:\n      id: t\n      inscriptions:\n"
            "        code: |\n          x = 1\n          y = = 2\n",
            "8: inscription 'expression': invalid syntax",
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(net: Path, text: str, complaint: str) -> None:
    net.write_text(text)
    command = [sys.executable, "-m", "vscode_bridge.net", net.name]
    done = run(command, clean_environment(), net.parent)
    assert done.stderr.startswith(f"net.evolve.yaml:{complaint}"), done.stderr
    assert (done.stdout, done.returncode) == ("", 2)


@pytest.mark.parametrize(
    ("prepare", "complaint"),
    [
        (lambda net: None, "net.evolve.yaml: cannot be read: No such file or directory"),
        (lambda net: net.mkdir(), "net.evolve.yaml: cannot be read: Is a directory"),
        (lambda net: net.write_bytes(b"\xff\xfe"), "net.evolve.yaml:1: the file is not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_read(net: Path, prepare: "object", complaint: str) -> None:
    prepare(net)  # type: ignore[operator]
    command = [sys.executable, "-m", "vscode_bridge.net", net.name]
    done = run(command, clean_environment(), net.parent)
    assert done.stderr.startswith(complaint), done.stderr
    assert done.returncode == 2


def test_without_pyyaml_the_remedy_is_named(net: Path) -> None:
    net.write_text(flat("pass"))
    code = (
        "import sys; sys.modules['yaml'] = None\n"
        "from vscode_bridge.net.__main__ import main\n"
        f"sys.exit(main([{net.name!r}]))"
    )
    done = run([sys.executable, "-c", code], clean_environment(), net.parent)
    assert done.stderr == "reading a net needs PyYAML: pip install 'vscode-bridge[net]'\n"
    assert done.returncode == 2


def test_help_names_the_exit_codes(net: Path) -> None:
    done = run([sys.executable, "-m", "vscode_bridge.net", "--help"], clean_environment())
    assert done.returncode == 0
    for line in ("0    nothing is left to fire", "1    an inscription raised", "3    the limit"):
        assert line in done.stdout
    for arguments in ([], ["a", "b"], ["a", "--max-steps", "0"], ["a", "--max-steps", "x"]):
        done = run([sys.executable, "-m", "vscode_bridge.net", *arguments], clean_environment())
        assert done.returncode == 2


def test_ctrl_c(net: Path, daemon: Daemon) -> None:
    host = daemon.host(slow_rule())
    net.write_text(flat("vscode_bridge.chat('Anybody?')"))
    code = "from vscode_bridge.net.__main__ import main; import sys; sys.exit(main(sys.argv[1:]))"
    process = daemon.python(code, str(net))
    request = host.event("request")
    process.interrupt()
    assert process.wait() == 130
    assert process.stderr() == "interrupted\n"
    host.event("cancel", id=request["id"])
