"""Shells, files, cells and web pages of a runtime, such as a sandbox.

>>> from vscode_bridge.tools import Tools  # doctest: +SKIP
>>> with Tools() as tools:  # doctest: +SKIP
...     shell = tools.shell()
...     shell.run("cd src && make").exit_code
...     tools.replace("src/a.py", "x = 1", "x = 2").diff

``Tools(runtime="build")`` uses the runtime with that id, ``Tools(path="~/orders")`` the one that
has this directory open; without either, the only one. Relative paths of files begin at ``path``, or
else at the runtime's workspace. Nothing outside the workspace can be reached.

Shells are persistent: directory, variables and functions are kept from one command to the next.
When a wait ends before its command, the command keeps running; it can be awaited again, get input,
and be interrupted. Times are in seconds. For asyncio there is ``AsyncTools``.

Every method raises ``BridgeError`` if it fails. ``error.kind`` is for instance ``NotFound``,
``Conflict`` or ``OutsideWorkspace``; ``error.data["reason"]`` is more precise. Reading returns the
``version`` of a file. Writing and editing accept it as ``if_version`` and raise
``vscode_bridge.Conflict``, without changing anything, if the file has another version by now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from ._cells import Cell
from ._files import Bytes, Copied, Edited, Entry, FileMethods, Found, Hashed, Match, Text, Written
from ._media import Media
from ._pages import Page, PageMethods
from ._route import PathLike, Route
from ._shell import AsyncShell, Command, OutputLost, Printed, Shell, ShellsMethods
from ._twins import AsyncConnected, BlockingConnected

if TYPE_CHECKING:
    from ._async_client import AsyncClient
    from ._client import Client

__all__ = [
    "AsyncShell",
    "AsyncTools",
    "Bytes",
    "Cell",
    "Command",
    "Copied",
    "Edited",
    "Entry",
    "Found",
    "Hashed",
    "Match",
    "Media",
    "OutputLost",
    "Page",
    "Printed",
    "Shell",
    "Text",
    "Tools",
    "Written",
]


class Tools(ShellsMethods[Shell], FileMethods, PageMethods, BlockingConnected):
    """The tools of a runtime. Without a ``client``, it opens its own connection."""

    def __init__(
        self,
        client: Optional[Client] = None,
        *,
        runtime: Optional[str] = None,
        path: Optional[PathLike] = None,
    ) -> None:
        super().__init__(client, Route(runtime, path))

    def shell(self, name: str = "main") -> Shell:
        """A shell by its name. If it does not exist, its first ``run`` starts it."""
        return Shell(self._client, name, self._route)

    def close(self) -> None:
        """Ends its own connection, if it has one. Shells and commands keep running."""
        self._leave()


class AsyncTools(ShellsMethods[AsyncShell], FileMethods, PageMethods, AsyncConnected):
    """The tools of a runtime for asyncio: the methods of ``Tools``, awaited, except ``shell``."""

    def __init__(
        self,
        client: Optional[AsyncClient] = None,
        *,
        runtime: Optional[str] = None,
        path: Optional[PathLike] = None,
    ) -> None:
        super().__init__(client, Route(runtime, path))

    def shell(self, name: str = "main") -> AsyncShell:
        """A shell by its name. If it does not exist, its first ``run`` starts it."""
        return AsyncShell(self._client, name, self._route)

    async def close(self) -> None:
        """Ends the connection, if it is our own. Shells and commands go on."""
        await self._leave()
