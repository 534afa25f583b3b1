"""``python -m vscode_bridge.net FILE``."""

from __future__ import annotations

import argparse
import sys
import traceback
from typing import List, Optional, Sequence

from ._model import InscriptionError, Net, NetError

FINISHED, FAILED, WRONG_NET, TOO_MANY_STEPS, INTERRUPTED = 0, 1, 2, 3, 130

DESCRIPTION = "Runs a Petri net with Python inscriptions (*.evolve.yaml, *.pnml.yaml)."

EXIT_CODES = """\
exit codes:
  0    nothing is left to fire
  1    an inscription raised an exception
  2    the command line or the net file is wrong
  3    the limit on steps was reached
  130  interrupted (Ctrl-C)

Inscriptions reach VS Code with `import vscode_bridge` when a bridge is there:
  bridge-daemon run -- python3 -m vscode_bridge.net FILE
"""


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command and returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options.file, options.max_steps, trace=options.trace)
    except NetError as error:
        return _complain(str(error), WRONG_NET)
    except OSError as error:
        return _complain(f"{options.file}: cannot be read: {error.strerror or error}", WRONG_NET)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m vscode_bridge.net",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the net")
    parser.add_argument(
        "--trace", action="store_true", help="write each step and the final marking to stderr"
    )
    parser.add_argument(
        "--max-steps",
        metavar="N",
        type=_positive,
        default=10_000,
        help="stop after N steps (default %(default)s)",
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _run(file: str, max_steps: int, *, trace: bool) -> int:
    try:
        from ._load import load
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        return _complain("reading a net needs PyYAML: pip install 'vscode-bridge[net]'", WRONG_NET)
    from ._inscription import offer_engine_alias
    from ._run import Firing, Run

    def watch(firing: Firing) -> None:
        if trace:
            transition = firing.transition
            _say(
                f"step {run.steps}: {transition.id} took {firing.consumed!r} from "
                f"{', '.join(transition.inputs)}; {firing.produced!r} to "
                f"{', '.join(transition.outputs) or 'nowhere'}"
            )

    net = load(file)
    _warn_of_idle_transitions(file, net)
    offer_engine_alias()
    run = Run(net)
    try:
        finished = run.to_the_end(max_steps, watch)
    except InscriptionError as error:
        return _report(file, error)
    finally:
        sys.stdout.flush()
    if trace:
        _say(f"{run.steps} steps; marking {net.marking!r}")
    if not finished:
        return _complain(
            f"{file}: stopped after {run.steps} steps; allow more with --max-steps", TOO_MANY_STEPS
        )
    if run.steps == 0:
        _say(f"{file}: nothing fired: no transition has a token in each of its input places")
    return FINISHED


def _warn_of_idle_transitions(file: str, net: Net) -> None:
    for transition in net.transitions:
        if not transition.inputs:
            _say(
                f"{file}:{transition.line}: transition {transition.id!r} never fires: "
                "no arc leads to it"
            )


def _report(file: str, error: InscriptionError) -> int:
    """Prints the exception with its line in the net's file, and the traceback from there."""
    cause = error.__cause__
    assert cause is not None
    frames = traceback.extract_tb(cause.__traceback__)
    first = next((n for n, frame in enumerate(frames) if frame.filename == file), None)
    own = [] if first is None else frames[first:]
    line = next((f.lineno for f in reversed(own) if f.filename == file), error.inscription.line)
    lines: List[str] = [f"{file}:{line}: {error}: {type(cause).__name__}: {cause}"]
    if own:
        lines += ["Traceback (most recent call last):", *_without_end(traceback.format_list(own))]
    return _complain("\n".join(lines), FAILED)


def _without_end(texts: List[str]) -> List[str]:
    return [text.rstrip("\n") for text in texts]


def _complain(text: str, code: int) -> int:
    _say(text)
    return code


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
