"""Tests our server with the client class of OpenHands. Started by scripts/test-openhands-client.

Arguments: the address of the server, and its working directory. The key is in SESSION_API_KEY.
"""

import os
import sys
import tempfile
import zipfile
from pathlib import Path

from openhands.core.config import OpenHandsConfig
from openhands.events import EventStream
from openhands.events.action import (
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
)
from openhands.events.event import FileEditSource, FileReadSource
from openhands.events.observation import (
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
)
from openhands.llm.llm_registry import LLMRegistry
from openhands.runtime.impl.action_execution.action_execution_client import (
    ActionExecutionClient,
)
from openhands.runtime.plugins import JupyterRequirement
from openhands.storage.memory import InMemoryFileStore


class Runtime(ActionExecutionClient):
    """The unmodified client, with the address of our server."""

    def __init__(self, url: str, *arguments, **more):
        self.url = url
        super().__init__(*arguments, **more)
        self.session.headers["X-Session-API-Key"] = os.environ["SESSION_API_KEY"]

    @property
    def action_execution_server_url(self) -> str:
        return self.url

    async def connect(self) -> None:
        raise NotImplementedError


def check(what: str, is_so: object, seen: object) -> None:
    if not is_so:
        sys.exit(f"FAILED: {what}: {seen!r}")
    print(f"ok: {what}")


def main(url: str, work: Path) -> None:
    config = OpenHandsConfig()
    config.workspace_mount_path_in_sandbox = str(work)
    stream = EventStream("test", InMemoryFileStore())
    runtime = Runtime(
        url, config, stream, LLMRegistry(config), plugins=[JupyterRequirement()],
        env_vars={"GREETING": 'say "hi"'},
    )

    runtime.check_if_alive()
    runtime.setup_initial_env()
    print("ok: connect")

    def run(command: str, **more: object) -> CmdOutputObservation:
        seen = runtime.run(CmdRunAction(command=command, **more))
        check(f"run {command!r}", isinstance(seen, CmdOutputObservation), seen)
        return seen

    seen = run('echo "$GREETING"; pwd; false')
    check("output", seen.content == f'say "hi"\n{work}', seen)
    check("metadata", seen.metadata.exit_code == 1 and seen.metadata.working_dir == str(work), seen)

    waiting = CmdRunAction(command="read -p 'name: ' x; echo got $x")
    waiting.set_hard_timeout(2, blocking=False)
    seen = runtime.run(waiting)
    check("a command waits", seen.metadata.exit_code == -1 and "name:" in seen.content, seen)
    seen = run("me", is_input=True)
    check("it gets its input", seen.content == "got me" and seen.metadata.exit_code == 0, seen)

    seen = runtime.run(CmdRunAction(command="a\nb"))
    check("two commands", isinstance(seen, ErrorObservation), seen)

    path = str(work / "file.txt")
    seen = runtime.write(FileWriteAction(path=path, content="one\ntwo"))
    check("write", isinstance(seen, FileWriteObservation), seen)
    seen = runtime.read(FileReadAction(path=path))
    check("read", isinstance(seen, FileReadObservation) and seen.content == "one\ntwo\n", seen)
    seen = runtime.read(FileReadAction(path=path, impl_source=FileReadSource.OH_ACI))
    check("view", "     2\ttwo" in seen.content, seen)
    edit = FileEditAction(path=path, command="str_replace", old_str="two", new_str="2",
                          impl_source=FileEditSource.OH_ACI)
    seen = runtime.edit(edit)
    check("edit", isinstance(seen, FileEditObservation) and "+2" in (seen.diff or ""), seen)
    seen = runtime.read(FileReadAction(path=str(work / "missing")))
    check("a missing file", isinstance(seen, ErrorObservation), seen)

    with tempfile.TemporaryDirectory() as own:
        tree = Path(own) / "tree"
        tree.mkdir()
        (tree / "leaf").write_text("green")
        runtime.copy_to(str(tree), str(work), recursive=True)
        runtime.copy_to(str(tree / "leaf"), str(work / "single"))
    check("upload", (work / "tree" / "leaf").read_text() == "green", work)
    check("upload of one file", (work / "single" / "leaf").read_text() == "green", work)
    names = runtime.list_files(str(work))
    check("list", names == ["single/", "tree/", "file.txt"], names)
    archive = runtime.copy_from(str(work / "tree"))
    with zipfile.ZipFile(archive) as unpacked:
        check("download", unpacked.read("leaf") == b"green", unpacked.namelist())
    archive.unlink()

    seen = runtime.run_ipython(IPythonRunCellAction(code="import os; print(os.environ['GREETING'])"))
    check("ipython", isinstance(seen, IPythonRunCellObservation) and 'say "hi"' in seen.content, seen)

    code = f"print(file_editor(command='view', path={str(work / 'file.txt')!r}))"
    seen = runtime.run_ipython(IPythonRunCellAction(code=code))
    check("file_editor in a cell", "Here's the result of running `cat -n`" in seen.content, seen)

    (work / "page.html").write_text("<h1>Title</h1><a href='https://example.org'>link</a>")
    seen = runtime.browse(BrowseURLAction(url="page.html"))
    shown = isinstance(seen, BrowserOutputObservation) and "Title" in seen.content
    check("browse", shown and not seen.error, seen)

    runtime.close()
    print("ok: close")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
