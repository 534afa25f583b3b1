"""A Unix socket in front of the daemon's, whose connections a test can cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import List

from bridge import LIMIT


class Relay:
    """Passes bytes between clients and the daemon until `cut`."""

    def __init__(self, path: Path, target: Path) -> None:
        self.path = path
        self._target = str(target)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._pairs: List[socket.socket] = []
        self._left = threading.Semaphore(0)
        self.accepted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            daemon = socket.socket(socket.AF_UNIX)
            daemon.connect(self._target)
            self._pairs += [client, daemon]
            self.accepted += 1
            threading.Thread(target=self._pass_on, args=(client, daemon), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(daemon, client), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self._left.release()

    def cut(self) -> None:
        """Ends all connections without a close frame, and waits until the client has noticed."""
        pairs, self._pairs = self._pairs, []
        for sock in pairs:
            with suppress(OSError):  # that side has already disconnected
                sock.shutdown(socket.SHUT_WR)
        for _ in pairs:
            assert self._left.acquire(timeout=LIMIT), "a side did not notice the cut"
        for sock in pairs:
            sock.close()

    def vanish(self) -> None:
        """Ends all connections, and accepts no new ones."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.path.unlink()
        self.cut()

    def end(self) -> None:
        if self.path.exists():
            self.vanish()
