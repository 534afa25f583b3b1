"""Actions of an agent, in the words of OpenHands, with the tools of a runtime such as a sandbox.

>>> from vscode_bridge import agent  # doctest: +SKIP
>>> agent.write("hello.sh", "echo Hello $1")  # doctest: +SKIP
>>> result = agent.run("sh hello.sh World", timeout=60)  # doctest: +SKIP
>>> result.content, result.exit_code  # doctest: +SKIP
('Hello World', 0)

The shells and files are those of ``vscode_bridge.tools``, as actions and observations: an
observation has the text for a language model in ``content``, and further members for programs.
Paths are relative to the directory of the agent's shell, or absolute, and lie in the runtime's
workspace. Times are in seconds.

The functions use the shell named ``agent``. ``Agent("second")`` uses another shell with its own
kernel, independently of them. ``Agent(runtime="build")`` uses the runtime with that id.
``AsyncAgent`` has the same methods for asyncio.

Ctrl-C, or the cancellation of the task, interrupts the command or cell that is waited for. A
failed action raises ``ActionError``, which is a ``BridgeError``, with a message for the agent.
Failures that a program may want to catch have classes of their own: ``NotFound``,
``OutsideWorkspace``, ``PermissionDenied``, ``Invalid``, ``Refused``, ``Unavailable``.
"""

from __future__ import annotations

from . import _api
from ._agent import Agent, AsyncAgent
from ._exceptions import (
    ActionError,
    Invalid,
    NotFound,
    OutsideWorkspace,
    PermissionDenied,
    Refused,
    Unavailable,
)
from ._media import Media
from ._observations import (
    BrowseObservation,
    CellObservation,
    EditObservation,
    Observation,
    ReadObservation,
    RunObservation,
    WriteObservation,
)

__all__ = [
    "ActionError",
    "Agent",
    "AsyncAgent",
    "BrowseObservation",
    "CellObservation",
    "EditObservation",
    "Invalid",
    "Media",
    "NotFound",
    "Observation",
    "OutsideWorkspace",
    "PermissionDenied",
    "ReadObservation",
    "Refused",
    "RunObservation",
    "Unavailable",
    "WriteObservation",
    "browse",
    "cancel",
    "close",
    "create",
    "execute",
    "insert",
    "interrupt",
    "ipython",
    "mkdir",
    "read",
    "replace",
    "restart_kernel",
    "rm",
    "rmdir",
    "run",
    "send_input",
    "undo",
    "view",
    "wait",
    "write",
]

_agent = Agent(client=_api.client)

run = _agent.run
wait = _agent.wait
send_input = _agent.send_input
interrupt = _agent.interrupt
ipython = _agent.ipython
restart_kernel = _agent.restart_kernel
read = _agent.read
view = _agent.view
write = _agent.write
create = _agent.create
replace = _agent.replace
insert = _agent.insert
undo = _agent.undo
mkdir = _agent.mkdir
rmdir = _agent.rmdir
rm = _agent.rm
browse = _agent.browse
execute = _agent.execute
cancel = _agent.cancel
close = _agent.close
