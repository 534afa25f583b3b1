"""Makes two chats at once with asyncio, and prints their text as it arrives.

Run it from the repository:

    bridge-daemon run --chat-command ./examples/calculator.sh -- python3 examples/stream_asyncio.py
"""

import asyncio

import vscode_bridge


async def ask(client: vscode_bridge.AsyncClient, question: str) -> None:
    async for piece in client.chat(question, stream=True):
        print(f"{question} {piece!r}", flush=True)


async def main() -> None:
    async with vscode_bridge.AsyncClient() as client:
        await asyncio.gather(ask(client, "What is 2+2?"), ask(client, "What is 20+22?"))


asyncio.run(main())
