"""Handing a frame to the socket: one system call where the socket takes it, and no copy.

asyncio joins the buffers of `writelines` before Python 3.12, which copies every answer with records once. So the first
try is ours, while the transport holds nothing back; what the socket does not take is the transport's.

It holds buffers as they are since 3.12: one unread byte of a view kept the frame beneath it, with all that others had
sent in it, and a connection is charged for the byte alone. And it adds up their sizes at each write: the 20,000 of one
large answer, handed over one by one, would have held the loop for seconds. So what has to wait is copied, in pieces
(3.11 does that by itself): a reader that is slow holds what it is charged for, and one piece.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

from quorumlog.wire.codec import Frame

_IOV_MAX = os.sysconf("SC_IOV_MAX")
_TRANSPORT_KEEPS_BUFFERS = sys.version_info >= (3, 12)
PIECE_BYTES = 64 * 1024


def send(transport: asyncio.Transport, frame: Frame) -> None:
    """A transport that is closing drops it, as asyncio does. One without a socket gets the frame in one piece."""
    socket = transport.get_extra_info("socket")
    if socket is None:
        transport.writelines(frame)
        return
    if len(frame) > 1 and transport.get_write_buffer_size() == 0 and not transport.is_closing():
        frame = _rest(frame, _write_now(socket.fileno(), frame))
    for buffer in copied(frame) if _TRANSPORT_KEEPS_BUFFERS else frame:
        transport.write(buffer)


def copied(frame: Frame) -> Iterator[bytearray]:
    """The same bytes in pieces of PIECE_BYTES, the last of them less, that are nobody else's."""
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
    """Bytes that the socket took. An error is left for the transport to meet: it tells the protocol."""
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
