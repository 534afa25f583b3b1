"""Shells of the sandbox, and the commands that run in them. Public names are in ``sandbox``."""

from __future__ import annotations

import base64
import codecs
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from . import _protocol
from ._call import Call
from ._client import Client
from ._exceptions import BridgeError

READ_BYTES = 1 << 20
"""Output that is read at once."""


@dataclass(frozen=True)
class Command:
    """What is known of a command when a wait for it has ended."""

    shell: str
    number: int
    """Its number in its shell."""
    state: str
    """``finished``, ``running`` or ``waitingForInput`` (a guess)."""
    text: str
    """What it has printed, as a terminal would show it; of much output both ends."""
    start: int
    """Where in the shell's log its output begins."""
    end: int
    """Where it ends, so far."""
    exit_code: Optional[int]
    """None while it runs, or if the shell was taken away under it."""
    cwd: Optional[str]
    """The shell's directory afterwards."""
    duration: Optional[float]
    details: Dict[str, Any]
    """Everything as it came: PROTOCOL.md lists the members."""

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self.state == "finished"

    @property
    def ok(self) -> bool:
        """Whether it has ended with exit code 0."""
        return self.exit_code == 0


class Shell:
    """A shell that stays. Objects of the same name speak to the same one."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client

    def __repr__(self) -> str:
        return f"Shell({self.name!r})"

    def run(
        self,
        command: str,
        *,
        limit: Optional[float] = None,
        quiet: Optional[float] = None,
        return_on_input: bool = False,
        on_output: Optional[Callable[[str], None]] = None,
    ) -> Command:
        """Runs a text of any number of lines and waits for its end.

        The wait also ends after ``limit``, when nothing was printed for ``quiet``, or, if asked to,
        when the command seems to wait for input; and by Ctrl-C. The command goes on then.
        ``on_output`` is called with the output as it comes, with everything that a terminal gets.
        """
        params = _waiting(limit, quiet, return_on_input)
        params.update(shell=self.name, command=command, create=True)
        return self._follow("sandbox/runCommand", params, None, on_output)

    def wait(
        self,
        *,
        limit: Optional[float] = None,
        quiet: Optional[float] = None,
        return_on_input: bool = False,
        start: Optional[int] = None,
        on_output: Optional[Callable[[str], None]] = None,
    ) -> Command:
        """Waits for the latest command, as ``run`` does. Its output comes from ``start`` on."""
        params = _waiting(limit, quiet, return_on_input)
        params.update(given(shell=self.name, **{"from": start}))
        return self._follow("sandbox/wait", params, start, on_output)

    def output(self, start: Optional[int] = None, *, size: Optional[int] = None) -> str:
        """What the latest command printed, or the shell's log from an offset on, as shown."""
        params = given(bytes=size, **{"from": start})
        return str(self._request("readOutput", params)["text"])

    def output_bytes(self, start: int, size: int) -> bytes:
        """Bytes of the log. Fewer come if there are fewer, or more than can be read at once."""
        params = {"from": start, "bytes": size, "raw": True}
        return base64.b64decode(self._request("readOutput", params)["base64"])

    def type(self, text: str, *, enter: bool = True) -> None:
        """Types a text, and Enter."""
        self._request("sendInput", {"text": text, "enter": enter})

    def press(self, *keys: str) -> None:
        """Presses keys: ``C-c``, ``C-d``, ``UP``, ``ENTER``, ``TAB``, ``ESC``, ``F1`` and so on."""
        self._request("sendKeys", {"keys": list(keys)})

    def interrupt(self) -> None:
        """Presses Ctrl-C."""
        self.press("C-c")

    def signal(self, name: str) -> None:
        """Signals the programs in the foreground: ``INT``, ``TERM``, ``KILL`` and so on."""
        self._request("signal", {"signal": name})

    def resize(self, columns: int, rows: int) -> None:
        """Changes the size of the terminal."""
        self._request("resize", {"columns": columns, "rows": rows})

    def attach_command(self, *, read_only: bool = False) -> str:
        """What a person runs to watch the shell, or to type along."""
        return str(self._request("attachCommand", {"readOnly": read_only})["command"])

    def close(self) -> None:
        """Ends the shell with all its programs. Its log is gone."""
        self._request("closeShell", {})

    def _request(self, method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
        params = {"shell": self.name, **params}
        return _protocol.members_of(self._client.request(f"sandbox/{method}", params))

    def _follow(
        self,
        method: str,
        params: Dict[str, Any],
        start: Optional[int],
        on_output: Optional[Callable[[str], None]],
    ) -> Command:
        if on_output is None:
            return _command(self._client.request(method, params))
        stream = _Stream(self, start, on_output)
        return stream.run(self._client, method, {**params, "stream": True})


class _Stream:
    """Hands output on as it comes, in the thread that waits.

    The bridge drops pieces for a reader that is slow. Offsets show what is missing, and it is read
    from the log.
    """

    def __init__(
        self, shell: Shell, start: Optional[int], on_output: Callable[[str], None]
    ) -> None:
        self._shell = shell
        self._next = start
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def run(self, client: Client, method: str, params: Mapping[str, Any]) -> Command:
        pieces: SimpleQueue[Tuple[bool, Any]] = SimpleQueue()
        call = Call(
            _protocol.new_request(method, params),
            None,
            on_done=lambda result, error: pieces.put((True, error or result)),
            on_progress=lambda value: pieces.put((False, value)),
        )
        client._start(call)
        try:
            while True:
                last, value = pieces.get()
                if last:
                    return self._finish(value)
                self._piece(_protocol.members_of(value))
        except BaseException:
            client._cancel(call)
            raise

    def _piece(self, value: Mapping[str, Any]) -> None:
        offset, data = int(value["offset"]), base64.b64decode(value["base64"])
        self._fill(offset)
        self._show(data)
        self._next = offset + len(data)

    def _finish(self, value: Any) -> Command:
        if isinstance(value, BridgeError):
            raise value
        command = _command(value)
        if command.details.get("ended") in (None, "atPrompt", "shellExited"):
            self._next = command.start if self._next is None else self._next
            self._fill(command.end)
        self._show(b"", final=True)
        return command

    def _fill(self, offset: int) -> None:
        while self._next is not None and self._next < offset:
            data = self._shell.output_bytes(self._next, min(READ_BYTES, offset - self._next))
            if not data:
                return
            self._show(data)
            self._next += len(data)

    def _show(self, data: bytes, final: bool = False) -> None:
        text = self._decoder.decode(data, final)
        if text:
            self._on_output(text)


def _waiting(
    limit: Optional[float], quiet: Optional[float], return_on_input: bool
) -> Dict[str, Any]:
    return given(
        limitMs=None if limit is None else _protocol.milliseconds(limit),
        quietMs=None if quiet is None else _protocol.milliseconds(quiet),
        returnOnInput=return_on_input,
    )


def _command(result: object) -> Command:
    details = _protocol.members_of(result)
    output = _protocol.members_of(details.get("output"))
    duration = details.get("durationMs")
    return Command(
        shell=str(details.get("shell")),
        number=int(details.get("command", 0)),
        state=str(details.get("state")),
        text=str(output.get("text", "")),
        start=int(output.get("start", 0)),
        end=int(output.get("end", 0)),
        exit_code=details.get("exitCode"),
        cwd=details.get("cwd"),
        duration=None if duration is None else duration / 1000,
        details=details,
    )


def given(**members: Any) -> Dict[str, Any]:
    """Members that are not None."""
    return {name: value for name, value in members.items() if value is not None}
