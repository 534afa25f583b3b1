"""A two-hop broker on Socket.IO: passes calls of clients on to the host, and its answers back."""

import asyncio
import socket

import socketio
import uvicorn

server = socketio.AsyncServer(async_mode="asgi", max_http_buffer_size=4_000_000)
host = ""


@server.on("host")
async def register(sid: str) -> None:
    global host
    host = sid


@server.on("call")
async def call(sid: str, data: object) -> object:
    return await server.call("call", data, to=host)


async def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    config = uvicorn.Config(
        socketio.ASGIApp(server), log_level="error", ws="websockets-sansio", ws_max_size=16_000_000
    )
    print(listener.getsockname()[1], flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


asyncio.run(main())
