"""Web pages through a real daemon, as actions of agents and as a tool."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Callable

from vscode_bridge import agent
from vscode_bridge.tools import Tools

from bridge import Daemon


class Page(BaseHTTPRequestHandler):
    """Serves the same page for every address."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<h1>A title</h1><a href='/next'>next</a>")


def test_web_pages(
    start_daemon: Callable[..., Daemon], enter: Callable[[Daemon], Daemon], workspace: Path
) -> None:
    # Without Chromium, even if one is installed.
    flags = ["--sandbox", str(workspace), "--browser-program", "/no/such/browser"]
    enter(start_daemon(*flags))
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        page = agent.browse(url)
    assert (page.url, page.error, page.screenshot) == (url, None, None)
    assert "A title" in page.content
    assert "[1]: /next" in page.content
    assert agent.browse(url).error


def test_pages_as_a_tool(
    start_daemon: Callable[..., Daemon], enter: Callable[[Daemon], Daemon], workspace: Path
) -> None:
    flags = ["--sandbox", str(workspace), "--browser-program", "/no/such/browser"]
    enter(start_daemon(*flags))
    with Tools() as tools, HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        page = tools.browse(f"http://127.0.0.1:{server.server_port}/")
        assert "A title" in page.text
        assert (page.picture, page.error) == (None, None)
        tools.write("page.html", "<h1>Another</h1>")
        assert "Another" in tools.browse("page.html").text
