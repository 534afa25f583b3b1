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
    """A web page as text and as a picture."""

    url: str
    """The address that was shown."""
    text: str
    """Its text, with its links."""
    picture: Optional[Media] = field(repr=False)
    """A picture of the page, if the runtime has a browser."""
    error: Optional[str]
    """Why the page could not be shown, or not in full."""


class PageMethods(Twin):
    """The methods for web pages."""

    @twin
    async def browse(self, url: str, *, limit: Optional[float] = None) -> Page:
        """Fetches a page: an ``http:`` or ``https:`` address, or an HTML file of the workspace.

        Gives up after ``limit`` (30 seconds).
        """
        if not url.startswith(("http:", "https:")):
            url = self._route.file(url)
        params = given(url=url, limitMs=_protocol.optional_milliseconds(limit))
        page = await self._tool("page/browse", params)
        png = page.get("pngBase64")
        picture = None if png is None else Media.from_base64("image/png", png)
        return Page(page["url"], page["text"], picture, page.get("error"))
