"""Messages of the Debug Adapter Protocol: JSON behind a Content-Length header."""

from __future__ import annotations

import json
from typing import IO, Any, Dict, Optional


def write(stream: IO[bytes], message: Dict[str, Any]) -> None:
    """Sends one message."""
    body = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    stream.flush()


def read(stream: IO[bytes]) -> Optional[Dict[str, Any]]:
    """The next message; None at the end of the stream."""
    length = 0
    while True:
        line = stream.readline()
        if not line:
            return None
        if line == b"\r\n":
            break
        name, _, value = line.decode("ascii").partition(":")
        if name.lower() == "content-length":
            length = int(value)
    message: Dict[str, Any] = json.loads(stream.read(length))
    return message
