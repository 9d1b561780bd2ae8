"""Frames from reads: the same for any split of the bytes, and nothing is allocated for a length alone."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.wire.format.cursor import Malformed
from quorumlog.wire.format.framing import SCRATCH_BYTES, FrameReader
from tests.parts import few

MAX_BYTES = 5_000_000


def reader(frames: list[bytes], scratch_bytes: int = SCRATCH_BYTES) -> FrameReader:
    scratch = memoryview(bytearray(scratch_bytes))
    return FrameReader(MAX_BYTES, scratch, lambda frame: frames.append(bytes(frame)))


def feed(frame_reader: FrameReader, data: bytes, most: int) -> None:
    """Like a socket: never more than `most` bytes at once, nor more than fit into the buffer."""
    position = 0
    while position < len(data):
        buffer = frame_reader.buffer()
        count = min(most, len(buffer), len(data) - position)
        buffer[:count] = data[position : position + count]
        del buffer  # the loop forgets it before it asks for the next
        frame_reader.received(count)
        position += count


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


@settings(max_examples=few(150), deadline=None)
@given(
    frames=st.lists(st.binary(min_size=1, max_size=300), max_size=12),
    reads=st.lists(st.integers(1, 40), min_size=1),
    scratch_bytes=st.integers(1, 64),
)
def test_any_split_of_bytes_gives_the_same_frames(frames: list[bytes], reads: list[int], scratch_bytes: int) -> None:
    found: list[bytes] = []
    frame_reader = reader(found, scratch_bytes)
    data, position = framed(*frames), 0
    for turn in range(len(data) + 1):
        count = reads[turn % len(reads)]
        feed(frame_reader, data[position : position + count], count)
        position += count
    assert found == frames and not frame_reader.in_frame


@pytest.mark.parametrize("most", [1_000, 65_536, 10_000_000])
@pytest.mark.parametrize("size", [65_532, 65_533, 65_536, 262_144, 262_145, 4_900_000])
def test_large_frames_arrive_whole(size: int, most: int) -> None:
    found: list[bytes] = []
    large = bytes(range(251)) * (size // 251 + 1)
    feed(reader(found), framed(b"before", large[:size], b"after"), most)
    assert found == [b"before", large[:size], b"after"]


def test_a_length_costs_no_memory_before_its_bytes_come() -> None:
    frame_reader = reader([])
    feed(frame_reader, struct.pack(">i", MAX_BYTES) + b"x", 100)
    assert len(frame_reader.buffer()) <= 64 * 1024


STRANGERS = [
    ("TLS", b"\x16\x03\x01\x02\x00\x01", "TLS hello"),
    ("HTTP", b"GET / HTTP/1.1\r\n", "HTTP request"),
    ("gRPC", b"PRI * HTTP/2.0\r\n", "gRPC"),
    ("SSH", b"SSH-2.0-x", "SSH"),
    ("negative length", struct.pack(">i", -1), "-1 bytes"),
    ("giant length", struct.pack(">i", 2**31 - 1), "2147483647 bytes"),
    ("one too large", struct.pack(">i", MAX_BYTES + 1), f"{MAX_BYTES + 1} bytes"),
    ("empty", struct.pack(">i", 0), "0 bytes"),
]


@pytest.mark.parametrize(("data", "said"), [row[1:] for row in STRANGERS], ids=[row[0] for row in STRANGERS])
@pytest.mark.parametrize("most", [1, 100])
def test_other_protocols_are_named(data: bytes, said: str, most: int) -> None:
    with pytest.raises(Malformed, match=said):
        feed(reader([]), data, most)
