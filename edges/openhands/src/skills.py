"""Names that cells of agents see from the beginning, as with OpenHands' agent skills.

Files are edited by the sandbox's own editor, the one behind the actions `edit` and `read`. The
first call starts it; it runs beside the kernel as the same user and under the same policy, and
remembers what can be undone. It ends with the kernel, because its input is a pipe from the kernel.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from typing import Any, List, Optional

__all__ = ["file_editor"]

# The program that loads this module appends a line that sets the command to start the editor.
EDITOR: List[str] = []


class _Editor:
    """Talks to the editor, which answers each line of JSON with another."""

    def __init__(self) -> None:
        self.process: Optional[subprocess.Popen[str]] = None
        self.lock = threading.Lock()

    def ask(self, request: Any) -> Any:
        with self.lock:
            process = self.process or self.start()
            assert process.stdin
            assert process.stdout
            # Set again after the answer. An interrupted call must not leave its answer to the next
            # one.
            self.process = None
            try:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
                if not answer:
                    raise RuntimeError("the editor has ended; the next call starts another")
            except BaseException:
                process.kill()
                process.wait()
                raise
            self.process = process
            return json.loads(answer)

    def start(self) -> subprocess.Popen[str]:
        # In a process session of its own, so that a Ctrl-C for the cell does not reach it.
        return subprocess.Popen(
            EDITOR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )


_editor = _Editor()


def _forget() -> None:
    global _editor
    _editor = _Editor()


# The pipes belong to the parent process; a forked child starts an editor of its own.
os.register_at_fork(after_in_child=_forget)


def file_editor(  # noqa: PLR0917 - the signature that agents use
    command: str,
    path: str,
    file_text: Optional[str] = None,
    view_range: Optional[List[int]] = None,
    old_str: Optional[str] = None,
    new_str: Optional[str] = None,
    insert_line: Optional[int] = None,
    enable_linting: bool = False,
) -> str:
    """Views, creates or changes the file at an absolute path, and returns a text about the result.

    Commands: ``view`` (with ``view_range``), ``create`` (``file_text``), ``str_replace``
    (``old_str``, ``new_str``), ``insert`` (``insert_line``, ``new_str``) and ``undo_edit``. The
    text of an error begins with ``ERROR:``. ``enable_linting`` is accepted, but nothing is
    linted.
    """
    given = {
        "command": command,
        "path": str(path),
        "file_text": file_text,
        "view_range": view_range,
        "old_str": old_str,
        "new_str": new_str,
        "insert_line": insert_line,
    }
    request = {name: value for name, value in given.items() if value is not None}
    return str(_editor.ask(request)["content"])
