"""The type of methods without parameters or result."""

from __future__ import annotations

from typing import TypedDict


class Empty(TypedDict):
    """No members."""
