"""What leaves a client under TLS is TLS: asyncio hands out the plain socket, and a write to it would be read by all."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from quorumlog.wire.calling.sending import send
from quorumlog.wire.protocol.codec import Frame
from tests.security.client.issuer_of_certificates import Authority

RECORD_TYPES = range(0x14, 0x18)  # change cipher, alert, handshake, application data
SECRET = b"a record that nobody else may read"


class Peer:
    """The server's end of a socket: raw: the bytes as they came; clear: what they said."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.raw, self.clear = bytearray(), bytearray()
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)

    async def serve(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(connection, 65_536):
            self.raw += data
            self._in.write(data)
            try:
                self._read()
            except ssl.SSLError:
                return  # it is no TLS; the test says where
            if answer := self._out.read():
                await loop.sock_sendall(connection, answer)

    def _read(self) -> None:
        try:
            self._tls.do_handshake()
            while data := self._tls.read(65_536):
                self.clear += data
            self._tls.unwrap()  # the client has ended: answer that
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._tls.unwrap()


def records_of(raw: bytes) -> list[int]:
    """The type of each record, whose length stands in its head (RFC 8446, 5.1)."""
    types, at = [], 0
    while at < len(raw):
        assert raw[at + 1] == 3, f"no TLS at byte {at}"
        types.append(raw[at])
        at += 5 + int.from_bytes(raw[at + 3 : at + 5], "big")
    return types


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_each_record_on_the_wire_is_one_of_tls(tmp_path: Path, version: ssl.TLSVersion) -> None:
    own = Authority(tmp_path, "own")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.issue("broker", hosts=("broker.example",)))
    context.maximum_version = version
    frames: list[Frame] = [[SECRET * 3, memoryview(SECRET * 20_000), b"x"], [SECRET], [b"a", SECRET * 5]]
    peer = Peer(context)

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        serving = asyncio.create_task(peer.serve(theirs))
        transport, _ = await asyncio.get_running_loop().create_connection(
            asyncio.Protocol,
            sock=ours,
            ssl=ssl.create_default_context(cafile=str(own.path)),
            server_hostname="broker.example",
        )
        for frame in frames:
            send(transport, list(frame))
        transport.close()
        await asyncio.wait_for(serving, 20)
        theirs.close()

    asyncio.run(scenario())
    assert set(records_of(bytes(peer.raw))) <= set(RECORD_TYPES)
    assert SECRET not in peer.raw
    assert bytes(peer.clear) == b"".join(bytes(part) for frame in frames for part in frame)
