"""Handing a frame to the socket: one system call where the socket takes it, and no copy.

asyncio joins the buffers of `writelines` before Python 3.12, which copies every answer with records once. So the first
try is ours, while the transport holds nothing back; what the socket does not take is the transport's.
"""

from __future__ import annotations

import asyncio
import os

from quorumlog.wire.codec import Frame

_IOV_MAX = os.sysconf("SC_IOV_MAX")


def send(transport: asyncio.Transport, frame: Frame) -> None:
    """A transport that is closing drops it, as asyncio does. One without a socket gets the frame in one piece."""
    if transport.get_extra_info("socket") is None:
        transport.writelines(frame)
        return
    if len(frame) > 1 and transport.get_write_buffer_size() == 0 and not transport.is_closing():
        frame = _rest(frame, _write_now(transport, frame))
    for buffer in frame:
        transport.write(buffer)


def _write_now(transport: asyncio.Transport, frame: Frame) -> int:
    """Bytes that the socket took. An error is left for the transport to meet: it tells the protocol."""
    try:
        return os.writev(transport.get_extra_info("socket").fileno(), frame[:_IOV_MAX])
    except OSError:
        return 0


def _rest(frame: Frame, sent_bytes: int) -> Frame:
    """The frame without its first `sent_bytes`."""
    for number, buffer in enumerate(frame):
        if sent_bytes < len(buffer):
            return [memoryview(buffer)[sent_bytes:], *frame[number + 1 :]]
        sent_bytes -= len(buffer)
    return []
