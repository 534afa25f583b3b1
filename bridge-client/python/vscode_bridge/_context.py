"""Objects that end with their ``with`` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class BlockingContext(ABC):
    """For ``with``."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self._leave()

    @abstractmethod
    def _leave(self) -> None:
        """Releases the resources of the object, at the end of the block."""


class AsyncContext(ABC):
    """For ``async with``."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self._leave()

    @abstractmethod
    async def _leave(self) -> None:
        """Releases the resources of the object, at the end of the block."""
