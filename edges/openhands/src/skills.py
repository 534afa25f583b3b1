"""What cells of agents find in their namespace from the beginning, as with OpenHands' agent skills.

Files are edited by the sandbox's own editor, the one behind the actions `edit` and `read`: it runs
beside the kernel, under the same user and the same walls, from the first call on, and remembers
what can be taken back. It ends with the kernel, whose end of the pipe it lives by.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from typing import Any, List, Optional

__all__ = ["file_editor"]

# The program that loads this module appends a line that says how the editor is started.
EDITOR: List[str] = []


class _Editor:
    """Asks the editor, which answers each line of JSON with another."""

    def __init__(self) -> None:
        self.process: Optional[subprocess.Popen[str]] = None
        self.turn = threading.Lock()

    def ask(self, request: Any) -> Any:
        with self.turn:
            process = self.process or self.start()
            assert process.stdin
            assert process.stdout
            # Set again when the answer is here, which an interrupted call leaves to nobody else.
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
        # In a session of its own, where a Ctrl-C for the cell does not reach it.
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


# The pipes are the parent's; a child that edits has an editor of its own.
os.register_at_fork(after_in_child=_forget)


def file_editor(  # noqa: PLR0917 - as agents call it
    command: str,
    path: str,
    file_text: Optional[str] = None,
    view_range: Optional[List[int]] = None,
    old_str: Optional[str] = None,
    new_str: Optional[str] = None,
    insert_line: Optional[int] = None,
    enable_linting: bool = False,
) -> str:
    """Views, creates or changes the file at an absolute path, and says what came of it.

    Commands: ``view`` (with ``view_range``), ``create`` (``file_text``), ``str_replace``
    (``old_str``, ``new_str``), ``insert`` (``insert_line``, ``new_str``) and ``undo_edit``. What
    goes wrong is told in a text that begins with ``ERROR:``. Nothing is linted, whatever
    ``enable_linting`` says.
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
