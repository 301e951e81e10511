"""A SOCKS5 proxy that forwards requests and drops the reply to those of one kind."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator

ALTER_PARTITION_REASSIGNMENTS = 45


class LossyProxy:
    """Forwards everything except the reply to `api_key`: it waits for the broker's reply, then closes the client's
    connection.

    The broker has executed the request when it replies, so the request has succeeded although the client cannot know
    it.
    """

    def __init__(self, api_key: int) -> None:
        self.api_key = api_key
        self.lost = 0
        self.url = ""
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def close(self) -> None:
        """Close all connections."""
        for client in self._connections.values():
            client.close()
        await asyncio.gather(*self._connections)

    async def accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """Serve one connection until either side closes it."""
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = to_client
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await self.serve(client, to_client)
        to_client.close()

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """One connection: the handshake without authentication, then whole frames, one request at a time."""
        await client.readexactly(3)
        to_client.write(b"\x05\x00")
        address = await client.readexactly(10)
        host, port = ".".join(str(byte) for byte in address[4:8]), int.from_bytes(address[8:])
        broker, to_broker = await asyncio.open_connection(host, port)
        to_client.write(b"\x05\x00\x00\x01" + bytes(6))
        with contextlib.closing(to_broker):
            while True:
                request = await self.frame(client)
                to_broker.write(request)
                reply = await self.frame(broker)
                if struct.unpack_from(">h", request, 4) == (self.api_key,):
                    self.lost += 1
                    return
                to_client.write(reply)

    async def frame(self, stream: asyncio.StreamReader) -> bytes:
        size = await stream.readexactly(4)
        return size + await stream.readexactly(int.from_bytes(size))


@contextlib.asynccontextmanager
async def lossy_proxy(api_key: int) -> AsyncIterator[LossyProxy]:
    """The proxy on its own port."""
    proxy = LossyProxy(api_key)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    async with server:
        proxy.url = f"socks5://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield proxy
        await proxy.close()
