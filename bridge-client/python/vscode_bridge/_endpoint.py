"""Finds the bridge of this run by three environment variables, in two families.

Scripts use the environment only. The daemon sets the variables for its run, so a script never joins
a run that is not its own. (The command line, which people use outside of a run, also looks for
connection files.)
"""

from __future__ import annotations

import os
from typing import Callable, Mapping, NamedTuple, Optional, Tuple

from ._exceptions import BridgeUnavailable

FAMILIES: Tuple[Tuple[str, str, str], ...] = tuple(
    (f"{prefix}_ADDR", f"{prefix}_TOKEN", f"{prefix}_SESSION")
    for prefix in ("RUN_BRIDGE", "EVOLVE_RUN_BRIDGE")
)
"""The families in the order in which they are read. A family counts if all three variables are set
and not empty. Values of different families are never mixed."""

NOT_INITIALIZED = (
    "VSCode bridge not initialized: this process was not started with one. "
    "Start it with `bridge-daemon run -- python3 ...`, or run the net from VS Code."
)


class Endpoint(NamedTuple):
    """Address, token and session of a bridge."""

    addr: str
    """``ws://127.0.0.1:PORT/`` or ``unix:PATH``."""

    token: str
    session: str

    def __repr__(self) -> str:
        """Leaves out the token, so that it is in no log and no traceback."""
        return f"Endpoint(addr={self.addr!r}, session={self.session!r})"

    @property
    def unix_path(self) -> Optional[str]:
        """The path of the socket if the address is ``unix:PATH``."""
        return self.addr[len("unix:") :] if self.addr.startswith("unix:") else None

    def host_and_port(self) -> Tuple[str, int]:
        """Host name and port of a ``ws://`` address."""
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(self.addr)
            host, port = parts.hostname, parts.port or 80
        except ValueError as error:
            raise self._malformed() from error
        if parts.scheme != "ws" or not host:
            raise self._malformed()
        return host, port

    def _malformed(self) -> BridgeUnavailable:
        return BridgeUnavailable(
            f"The bridge's address {self.addr!r} is neither ws://HOST:PORT/ nor unix:PATH. "
            "Check RUN_BRIDGE_ADDR, or start the program with `bridge-daemon run -- ...`."
        )


def find(environ: Mapping[str, str] = os.environ) -> Optional[Endpoint]:
    """The endpoint of the first complete family, or None."""
    for names in FAMILIES:
        addr, token, session = (environ.get(name, "") for name in names)
        if addr and token and session:
            return Endpoint(addr, token, session)
    return None


def from_environment() -> Endpoint:
    """The endpoint from the environment, or an error that says how to get a bridge."""
    endpoint = find()
    if endpoint is None:
        raise BridgeUnavailable(NOT_INITIALIZED)
    return endpoint


def finder(endpoint: Optional[Endpoint]) -> Callable[[], Endpoint]:
    """A function that returns ``endpoint``, or without one reads the environment each time."""
    return from_environment if endpoint is None else lambda: endpoint
