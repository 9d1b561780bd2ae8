"""Zigzag varints of a whole column at once, with numpy. A position of -1 stands for a number that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quorumlog.records.columnar.arrow import Bytes, Numbers

_ONE, _SEVEN = np.uint64(1), np.uint64(7)
_LOW_BITS = 0x7F


def get_varints(data: Bytes, positions: Numbers, ends: Numbers, bits: int) -> tuple[Numbers, Numbers]:
    """(values, positions after them) of numbers of 32 or 64 bits, each before its end.

    Where there is no such number, the value is 0 and the position -1. A position of -1 stays -1, so that a caller can
    check once after several reads.
    """
    readable = (positions >= 0) & (positions < ends)
    all_readable = bool(readable.all())
    first = data[positions] if all_readable else data[np.where(readable, positions, 0)]
    values, after = (first & _LOW_BITS).astype(np.uint64), positions + 1
    longer = first > _LOW_BITS
    if not all_readable:
        longer &= readable
        values[~readable], after[~readable] = 0, -1
    rest = np.flatnonzero(longer)
    for shift in range(7, bits, 7):
        if not len(rest):
            break
        rest = _take_bytes(data, ends, values, after, rest, shift, bits)
    values[rest], after[rest] = 0, -1  # longer than its type allows
    return _from_zigzag(values), after


def _take_bytes(
    data: Bytes,
    ends: Numbers,
    values: NDArray[np.uint64],
    after: Numbers,
    rest: NDArray[np.intp],
    shift: int,
    bits: int,
) -> NDArray[np.intp]:
    """Add one more byte to the numbers `rest`. Returns those that go on after it."""
    inside = after[rest] < ends[rest]
    lost, rest = rest[~inside], rest[inside]
    byte = data[after[rest]]
    fits = (byte & _LOW_BITS) >> (bits - shift) == 0 if bits - shift < 7 else np.ones(len(rest), bool)
    lost, rest, byte = np.concatenate([lost, rest[~fits]]), rest[fits], byte[fits]
    values[lost], after[lost] = 0, -1
    values[rest] |= (byte & _LOW_BITS).astype(np.uint64) << np.uint64(shift)
    after[rest] += 1
    going_on: NDArray[np.intp] = rest[byte > _LOW_BITS]
    return going_on


def varint_bytes(values: Numbers) -> Numbers:
    """Bytes that each int64 takes."""
    zigzag = _zigzag(values)
    sizes = np.ones(len(values), np.int64)
    limit = 1 << 7
    while limit < 1 << 64 and len(values):
        longer = zigzag >= np.uint64(limit)
        if not longer.any():
            break
        sizes += longer
        limit <<= 7
    return sizes


def put_varints(out: Bytes, positions: Numbers, values: Numbers) -> None:
    """Write each int64 at its position; the caller has left `varint_bytes` for it."""
    zigzag, places = _zigzag(values), positions
    while len(zigzag):
        longer = zigzag > np.uint64(_LOW_BITS)
        low = (zigzag & np.uint64(_LOW_BITS)).astype(np.uint8)
        if not longer.any():
            out[places] = low
            return
        out[places] = low | (longer.astype(np.uint8) << 7)
        zigzag, places = zigzag[longer] >> _SEVEN, places[longer] + 1


def _from_zigzag(values: NDArray[np.uint64]) -> Numbers:
    signs = np.negative((values & _ONE).view(np.int64))
    return np.bitwise_xor((values >> _ONE).view(np.int64), signs)


def _zigzag(values: Numbers) -> NDArray[np.uint64]:
    return ((values << 1) ^ (values >> 63)).view(np.uint64)
