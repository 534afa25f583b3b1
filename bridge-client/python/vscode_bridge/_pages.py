"""Web pages. Public names are in ``tools``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from . import _protocol
from ._media import Media
from ._protocol import given
from ._twins import Twin, twin


@dataclass(frozen=True)
class Page:
    """What a web page shows."""

    url: str
    """The address that was shown."""
    text: str
    """Its text, with its links."""
    picture: Optional[Media] = field(repr=False)
    """A picture of it, where the runtime has a browser."""
    error: Optional[str]
    """Why it could not be shown, or not in full."""


class PageMethods(Twin):
    """What can be done with web pages."""

    @twin
    async def browse(self, url: str, *, limit: Optional[float] = None) -> Page:
        """Fetches a page: an ``http:`` or ``https:`` address, or an HTML file of the workspace.

        Gives up after ``limit``, which is 30 seconds unless you say otherwise.
        """
        if not url.startswith(("http:", "https:")):
            url = self._route.file(url)
        params = given(url=url, limitMs=_protocol.optional_milliseconds(limit))
        page = await self._tool("page/browse", params)
        png = page.get("pngBase64")
        picture = None if png is None else Media.from_base64("image/png", png)
        return Page(page["url"], page["text"], picture, page.get("error"))
