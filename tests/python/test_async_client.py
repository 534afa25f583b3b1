"""The asyncio client."""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable

import pytest

from vscode_bridge import (
    AsyncClient,
    BridgeCancelled,
    BridgeTimeout,
    BridgeUnavailable,
    Conversation,
    RequestFailed,
)

from bridge import LIMIT, Daemon, chat_rule, slow_rule


def run(daemon: Daemon, work: Callable[[AsyncClient], Awaitable[Any]]) -> Any:
    """Runs `work` with a client, within the limit."""

    async def main() -> Any:
        async with AsyncClient(daemon.endpoint) as client:
            return await asyncio.wait_for(work(client), LIMIT)

    return asyncio.run(main())


def test_methods(daemon: Daemon) -> None:
    host = daemon.host(
        chat_rule(),
        {"method": "vscode/showMessage", "result": {"choice": "Yes"}},
        {"method": "vscode/executeCommand", "result": {"result": [1]}},
        {"method": "vscode/getChatHistory", "result": {"messages": [{"role": "user"}]}},
    )

    async def work(client: AsyncClient) -> None:
        talk = Conversation()
        assert await client.get_chat_history(talk) == []
        assert await client.chat("hi", 5, model="gpt", conversation=talk) == "You said: hi"
        assert await client.show_message("Go?", buttons=["Yes"]) == "Yes"
        assert await client.execute_command("x", 1) == [1]
        assert await client.get_chat_history(talk, limit=3) == [{"role": "user"}]

    run(daemon, work)
    assert host.request("vscode/chat") == {"message": "hi", "timeout": 5000, "model": "gpt"}
    assert host.request("vscode/getChatHistory") == {"conversationId": "c1", "limit": 3}


def test_many_at_once(daemon: Daemon) -> None:
    daemon.host(chat_rule())

    async def work(client: AsyncClient) -> None:
        answers = await asyncio.gather(*(client.chat(str(n)) for n in range(200)))
        assert answers == [f"You said: {n}" for n in range(200)]

    run(daemon, work)


def test_streaming(daemon: Daemon) -> None:
    fifo = daemon.fifo()
    daemon.host(chat_rule("one two", progress=[{"text": "one "}], fifo=str(fifo.path)))

    async def work(client: AsyncClient) -> None:
        stream = client.chat("count", stream=True)
        assert await stream.__anext__() == "one "
        fifo.open()
        assert [piece async for piece in stream] == ["two"]
        assert stream.response == "one two"

    run(daemon, work)


def test_cancelling_the_task_cancels_at_the_host(daemon: Daemon) -> None:
    host = daemon.host(slow_rule())

    async def work(client: AsyncClient) -> None:
        task = asyncio.ensure_future(client.chat("Anybody?"))
        request = await asyncio.to_thread(host.event, "request")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(host.event, "cancel", id=request["id"])

    run(daemon, work)


def test_leaving_a_stream_cancels_at_the_host(daemon: Daemon) -> None:
    host = daemon.host(slow_rule("vscode/chat", progress=[{"text": "x"}]))

    async def work(client: AsyncClient) -> None:
        async with client.chat("Anybody?", stream=True) as stream:
            async for _piece in stream:
                break
        await asyncio.to_thread(host.event, "cancel")

    run(daemon, work)


def test_closing_ends_what_waits(daemon: Daemon) -> None:
    host = daemon.host(slow_rule())

    async def work(client: AsyncClient) -> None:
        task = asyncio.ensure_future(client.chat("Anybody?"))
        await asyncio.to_thread(host.event, "request")
        await client.close()
        with pytest.raises(BridgeCancelled, match="closed"):
            await task

    run(daemon, work)


def test_errors(daemon: Daemon) -> None:
    error = {"code": 1, "message": "broken"}
    daemon.host({"method": "vscode/executeCommand", "error": error}, slow_rule())

    async def work(client: AsyncClient) -> None:
        with pytest.raises(RequestFailed, match="broken"):
            await client.execute_command("x")
        with pytest.raises(BridgeTimeout):
            await client.chat("Anybody?", timeout=0.3)
        with pytest.raises(BridgeTimeout):
            async for _piece in client.chat("Anybody?", timeout=0.3, stream=True):
                pass

    run(daemon, work)


def test_no_bridge(no_bridge: None) -> None:
    async def main() -> None:
        async with AsyncClient() as client:
            with pytest.raises(BridgeUnavailable, match="not initialized"):
                await client.chat("hi")

    asyncio.run(main())


def test_environment(inside: Daemon) -> None:
    inside.host(chat_rule())

    async def main() -> str:
        async with AsyncClient() as client:
            return await client.chat("hi")

    assert asyncio.run(main()) == "You said: hi"
