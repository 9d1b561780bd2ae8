"""Giving a frame to the socket of a calling connection: one system call and no copy, if the socket takes all of it.

Before Python 3.12 asyncio joins the buffers of `writelines`, which copies every answer with records. So if the
transport holds nothing back, this module writes to the socket itself first; the transport gets what the socket did not
take.

Since 3.12 the transport keeps the buffers as they are. One unsent byte of a view would then keep the whole frame below
it alive, though the connection is charged for the one byte. And the transport sums up the sizes of its buffers at each
write: the 20,000 buffers of a large answer, given one by one, would block the loop for seconds. So what has to wait is
copied in pieces (3.11 copies by itself): a slow reader holds what it is charged for, and one piece.

Under TLS, asyncio hands out the plain socket: what is written to it is seen by everybody and breaks the connection. So
then all bytes go by the transport, in pieces, since each buffer becomes at least one record of TLS.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

from quorumlog.wire.protocol.codec import Frame
from quorumlog.wire.protocol.limits import PIECE_BYTES

_IOV_MAX = os.sysconf("SC_IOV_MAX")
_TRANSPORT_KEEPS_BUFFERS = sys.version_info >= (3, 12)


def send(transport: asyncio.Transport, frame: Frame) -> None:
    """A closing transport drops the frame. One without a socket gets it by `writelines`.

    asyncio drops it, too, but complains of each write from the fifth on, and a turn may have many calls to send.
    """
    if transport.is_closing():
        return
    socket = transport.get_extra_info("socket")
    if socket is None:
        transport.writelines(frame)
        return
    if transport.get_extra_info("sslcontext") is not None:
        for piece in copied(frame):
            if not transport.is_closing():
                transport.write(piece)
        return
    if len(frame) > 1 and transport.get_write_buffer_size() == 0:
        frame = _rest(frame, _write_now(socket.fileno(), frame))
    for buffer in copied(frame) if _TRANSPORT_KEEPS_BUFFERS else frame:
        if not transport.is_closing():
            transport.write(buffer)


def copied(frame: Frame) -> Iterator[bytearray]:
    """Copies of the bytes, in pieces of PIECE_BYTES; the last one may be smaller."""
    piece = bytearray()
    for buffer in frame:
        view = memoryview(buffer)
        while view:
            part = view[: PIECE_BYTES - len(piece)]
            piece += part
            view = view[len(part) :]
            if len(piece) == PIECE_BYTES:
                yield piece
                piece = bytearray()
    if piece:
        yield piece


def _write_now(descriptor: int, frame: Frame) -> int:
    """How many bytes the socket took. An error counts as 0: the transport meets it too, and tells the protocol."""
    try:
        return os.writev(descriptor, frame[:_IOV_MAX])
    except OSError:
        return 0


def _rest(frame: Frame, sent_bytes: int) -> Frame:
    """The frame without its first `sent_bytes`."""
    if sent_bytes == sum(map(len, frame)):
        return []
    for number, buffer in enumerate(frame):
        if sent_bytes < len(buffer):
            return [memoryview(buffer)[sent_bytes:], *frame[number + 1 :]]
        sent_bytes -= len(buffer)
    return []
