"""The choice of the runtime for a request. Public parameters are ``runtime`` and ``path``."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Union

from ._protocol import given

if TYPE_CHECKING:
    PathLike = Union[str, os.PathLike[str]]
else:
    PathLike = Union[str, os.PathLike]


class Route:
    """The choice of a runtime: by its id, by a directory that it has open, by both or neither."""

    def __init__(self, runtime: Optional[str] = None, path: Optional[PathLike] = None) -> None:
        self._runtime = runtime
        # The bridge compares real paths. A path that does not exist here may be on another machine.
        self._path = None if path is None else os.path.realpath(os.path.expanduser(path))

    def file(self, path: str) -> str:
        """The path of a file as it is sent. A relative path begins at ``path``.

        ``..`` at its beginning is resolved here, because only a path without ``..`` chooses a
        runtime. This is safe because the directory is a real path without links. A ``..`` behind
        other names, which may be links, stays.
        """
        if self._path is None or path.startswith("/"):
            return path
        base, names = self._path, [name for name in path.split("/") if name not in ("", ".")]
        while names and names[0] == "..":
            base = posixpath.dirname(base)
            del names[0]
        return posixpath.join(base, *names)

    def added_to(self, params: Mapping[str, Any]) -> Dict[str, Any]:
        """The parameters with the members that choose the runtime. A ``path`` in them stays."""
        return {**given(runtimeId=self._runtime, path=self._path), **params}

    def __repr__(self) -> str:
        return ", ".join(
            f"{name}={value!r}"
            for name, value in given(runtime=self._runtime, path=self._path).items()
        )
