"""Images and other media. The public name is in ``agent`` and ``tools``."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class Media:
    """An image, a video, a sound or a PDF."""

    media_type: str
    """For instance ``image/png``."""
    data: bytes = field(repr=False)
    version: Optional[str] = field(default=None, compare=False)
    """The version of the file that it was read from, for ``if_version``."""

    @classmethod
    def from_base64(cls, media_type: str, content: str, version: Optional[str] = None) -> Media:
        return cls(media_type, base64.b64decode(content), version)

    @classmethod
    def from_url(cls, url: str) -> Media:
        """Decodes a data URL of the bridge."""
        media_type, _, content = url[len("data:") :].partition(";base64,")
        return cls.from_base64(media_type, content)
