"""Text that arrives before the answer is complete."""

from __future__ import annotations

import gc

import pytest

from vscode_bridge import BridgeError, BridgeTimeout, ChatStream, Client, Conversation

from bridge import Daemon, chat_rule, slow_rule

PIECES = [{"text": "Two, "}, {"text": "three, "}]


def test_text_arrives_before_the_host_has_finished(daemon: Daemon, client: Client) -> None:
    fifo = daemon.fifo()
    daemon.host(chat_rule("Two, three, five.", progress=PIECES, fifo=str(fifo.path)))
    talk = Conversation()
    stream = client.chat("Primes?", conversation=talk, stream=True)
    assert next(stream) == "Two, "
    assert next(stream) == "three, "
    assert talk.id is None  # the host waits for the FIFO
    fifo.open()
    assert list(stream) == ["five."]
    assert isinstance(stream, ChatStream)
    assert stream.response == "Two, three, five."
    assert talk.id == "c1"


def test_a_host_that_does_not_stream(daemon: Daemon, client: Client) -> None:
    daemon.host(chat_rule("All at once."))
    assert list(client.chat("Primes?", stream=True)) == ["All at once."]


def test_an_error_ends_the_stream(daemon: Daemon, client: Client) -> None:
    error = {"code": -32000, "message": "the model is gone"}
    daemon.host({"method": "vscode/chat", "progress": PIECES, "error": error})
    stream = client.chat("Primes?", stream=True)
    assert [next(stream), next(stream)] == ["Two, ", "three, "]
    with pytest.raises(BridgeError, match="the model is gone"):
        next(stream)
    assert list(stream) == []


def test_a_timeout_ends_the_stream(daemon: Daemon, client: Client) -> None:
    daemon.host(slow_rule("vscode/chat", progress=PIECES))
    with pytest.raises(BridgeTimeout):
        list(client.chat("Primes?", timeout=0.4, stream=True))


def test_closing_a_stream_cancels_the_request(daemon: Daemon, client: Client) -> None:
    host = daemon.host(slow_rule("vscode/chat", progress=PIECES))
    stream = client.chat("Primes?", stream=True)
    assert isinstance(stream, ChatStream)
    next(stream)
    request = host.event("request")
    stream.close()
    host.event("cancel", id=request["id"])
    assert list(stream) == []


def test_dropping_a_stream_cancels_the_request(daemon: Daemon, client: Client) -> None:
    host = daemon.host(slow_rule("vscode/chat", progress=PIECES))
    for _piece in client.chat("Primes?", stream=True):
        break
    del _piece
    gc.collect()
    host.event("cancel")


def test_a_stream_keeps_its_client(daemon: Daemon) -> None:
    daemon.host(chat_rule("Two, three, five.", progress=PIECES))
    stream = Client(daemon.endpoint).chat("Primes?", stream=True)
    gc.collect()
    assert "".join(stream) == "Two, three, five."


def test_without_a_timeout_progress_keeps_a_call_alive(daemon: Daemon, client: Client) -> None:
    # timeout=0 is the method's default; the wire says so with a 0.
    host = daemon.host(chat_rule("done", progress=PIECES), slow_rule())
    assert "".join(client.chat("Primes?", timeout=0, stream=True)).endswith("three, ")
    assert host.request("vscode/chat")["timeout"] == 0
