"""The compiled work with keys: finds the records of whole batches, hashes their keys and knows the map.

It decides as `keys.py` does, its second answer in the tests, and accepts the same bytes as `record_table.py`. It reads
nothing outside the batches that it is given, whatever is in them. The hash is SipHash-2-4 with 128 bits, keyed like
the one of the plain form (Aumasson and Bernstein, "SipHash: a fast short-input PRF").

`rows`: one batch a row, in the columns below. `numbers`: what is known of the map and the marks, and the answers, in
the places below. Kernels run without bounds checks and allocate nothing.

For mypy an element of a numpy array has the type Any: each `type: ignore` here stands where a kernel returns one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

Function = TypeVar("Function", bound="Callable[..., Any]")

# columns of `rows`; the first ones suffice for `index_rows` and `look_rows`, the others are the header's other fields
AT, END, COUNT, LAST_DELTA, BASE_OFFSET, TOMBSTONE, DROPS_TOMBSTONES = range(7)
POSITION, LEADER_EPOCH, CRC, ATTRIBUTES, BASE_TIME, MAX_TIME, PRODUCER, PRODUCER_EPOCH, SEQUENCE, COLUMNS = range(7, 17)
SIZE, CAPACITY, SLOTS, FIRST_MARK, LATEST, KEYLESS, BAD_ROW, NUMBERS = range(8)  # places in `numbers`
STAYING, TOMBSTONES, GONE_KEYLESS, LARGEST, RANGES_FROM, RANGES_TO, FOUND_COLUMNS = range(7)  # columns of `found`

DONE, BAD = -1, -3  # answers of `index_rows` beside the offset that has no room
LEAST = -(2**63)
MIN_RECORD_BYTES = 7
BATCH_OVERHEAD = 61

_njit: Any = njit
_OPTIONS = {"nogil": True, "boundscheck": False, "_nrt": False}

_8, _16, _24, _32, _40, _48, _56 = (np.uint64(bits) for bits in range(8, 64, 8))
_13, _17, _21, _43, _47, _51 = (np.uint64(bits) for bits in (13, 17, 21, 43, 47, 51))
_LENGTH_MASK, _FINAL, _MORE, _WIDE = np.uint64(0xFF), np.uint64(0xEE), np.uint64(0xDD), np.uint64(0xEE)
_INIT = tuple(
    np.uint64(word) for word in (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
)
_I0, _I1, _I2, _I3 = _INIT


def _compiled(function: Function, **more: bool) -> Function:
    try:
        return _njit(cache=True, **_OPTIONS, **more)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder for the cache is writable
        return _njit(**_OPTIONS, **more)(function)  # type: ignore[no-any-return]


def _kernel(function: Function) -> Function:
    return _compiled(function)


def _inlined(function: Function) -> Function:
    return _compiled(function, forceinline=True)


@_inlined
def _round(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any]:
    a = a + b
    b = ((b << _13) | (b >> _51)) ^ a
    a = (a << _32) | (a >> _32)
    c = c + d
    d = ((d << _16) | (d >> _48)) ^ c
    a = a + d
    d = ((d << _21) | (d >> _43)) ^ a
    c = c + b
    b = ((b << _17) | (b >> _47)) ^ c
    c = (c << _32) | (c >> _32)
    return a, b, c, d


@_inlined
def _word(data: NDArray[np.uint8], at: int) -> Any:
    """Eight bytes, little endian."""
    word = np.uint64(data[at]) | np.uint64(data[at + 1]) << _8
    word |= np.uint64(data[at + 2]) << _16 | np.uint64(data[at + 3]) << _24
    word |= np.uint64(data[at + 4]) << _32 | np.uint64(data[at + 5]) << _40
    return word | np.uint64(data[at + 6]) << _48 | np.uint64(data[at + 7]) << _56


@_inlined
def hashed(data: NDArray[np.uint8], start: int, end: int, key0: Any, key1: Any) -> tuple[Any, Any]:
    """SipHash-2-4-128 of data[start:end], as two words."""
    a, b, c, d = key0 ^ _I0, key1 ^ _I1 ^ _WIDE, key0 ^ _I2, key1 ^ _I3
    last = (np.uint64(end - start) & _LENGTH_MASK) << _56
    while end - start >= 8:
        word = _word(data, start)
        d = d ^ word
        a, b, c, d = _round(a, b, c, d)
        a, b, c, d = _round(a, b, c, d)
        a = a ^ word
        start += 8
    for index in range(end - start):
        last |= np.uint64(data[start + index]) << np.uint64(8 * index)
    d = d ^ last
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a = a ^ last
    c = c ^ _FINAL
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    first = a ^ b ^ c ^ d
    b = b ^ _MORE
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return first, a ^ b ^ c ^ d


@_inlined
def _raw(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """(zigzag form of a varint of 32 bits, position after it); position -1 if there is none before `end`."""
    value: Any = 0
    for index in range(5):
        if at >= end:
            return 0, -1
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value >> 32:
                return 0, -1
            return value, at
    return 0, -1


@_inlined
def _delta(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """(timestamp delta, position after it); position -1 if there is no varint of 64 bits before `end`."""
    value = np.uint64(0)
    for index in range(10):
        if at >= end:
            return 0, -1
        byte = np.int64(data[at])
        at += 1
        value |= np.uint64(byte & 0x7F) << np.uint64(7 * index)
        if byte < 0x80:
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), at  # type: ignore[return-value]
    return 0, -1


@_inlined
def _record(
    data: NDArray[np.uint8], at: int, end: int, previous: int, last_delta: int
) -> tuple[int, int, int, int, int, int]:
    """(end, offset delta, key or -1, end of the key, 1 if it has a value, timestamp delta); end -1 if it is none."""
    raw, at = _raw(data, at, end)
    if at < 0 or raw & 1:
        return -1, 0, 0, 0, 0, 0
    record_end = at + (raw >> 1)
    if record_end > end:
        return -1, 0, 0, 0, 0, 0
    timestamp, at = _delta(data, at + 1, end)
    if at < 0:
        return -1, 0, 0, 0, 0, 0
    raw, at = _raw(data, at, end)
    delta = raw >> 1
    if at < 0 or delta <= previous or delta > last_delta:
        return -1, 0, 0, 0, 0, 0
    raw, at = _raw(data, at, end)
    if at < 0:
        return -1, 0, 0, 0, 0, 0
    key, key_end = -1, -1
    if not raw & 1:
        key, key_end = at, at + (raw >> 1)
        at = key_end
    if at >= record_end:
        return -1, 0, 0, 0, 0, 0
    return record_end, delta, key, key_end, 1 - (data[at] & 1), timestamp


@_inlined
def _slot(words: NDArray[np.uint64], slots: int, first: Any, second: Any) -> int:
    """Where this key is, or the free place where it would be."""
    at: Any = np.int64(first % np.uint64(slots)) * 3
    while words[at + 2] != 0 and (words[at] != first or words[at + 1] != second):
        at += 3
        if at == 3 * slots:
            at = 0
    return at  # type: ignore[no-any-return]


@_inlined
def _big(data: NDArray[np.uint8], at: int, size: int) -> int:
    """A signed number, big endian."""
    value: Any = np.int64(np.int8(data[at]))
    for index in range(1, size):
        value = value << 8 | np.int64(data[at + index])
    return value  # type: ignore[no-any-return]


@_kernel
def scan_rows(data: NDArray[np.uint8], rows: NDArray[np.int64], now_ms: int) -> int:
    """The headers of whole batches from the first byte on. How many there are before the end, a part of a batch, or
    a header that only `parse_header` understands or refuses.
    """
    at = count = 0
    while count < rows.shape[0] and at + BATCH_OVERHEAD <= len(data):
        end = at + 12 + _big(data, at + 8, 4)
        base, last_delta, records = _big(data, at, 8), _big(data, at + 23, 4), _big(data, at + 57, 4)
        is_batch = data[at + 16] == 2 and base >= 0 and last_delta >= 0 and base < 2**63 - 1 - last_delta
        if not is_batch or end < at + BATCH_OVERHEAD or end > len(data) or records < 0 or records > last_delta + 1:
            break
        row = rows[count]
        row[AT], row[END], row[COUNT], row[LAST_DELTA], row[BASE_OFFSET] = (
            at + BATCH_OVERHEAD, end, records, last_delta, base,
        )  # fmt: skip
        row[POSITION], row[LEADER_EPOCH], row[CRC] = at, _big(data, at + 12, 4), _big(data, at + 17, 4) & 0xFFFFFFFF
        row[ATTRIBUTES], row[BASE_TIME] = _big(data, at + 21, 2), _big(data, at + 27, 8)
        row[MAX_TIME] = _big(data, at + 35, 8)
        row[PRODUCER], row[PRODUCER_EPOCH], row[SEQUENCE] = (
            _big(data, at + 43, 8), _big(data, at + 51, 2), _big(data, at + 53, 4),
        )  # fmt: skip
        row[TOMBSTONE], row[DROPS_TOMBSTONES] = 2, 0
        if row[ATTRIBUTES] & 0x40:
            has_passed = row[BASE_TIME] != -1 and now_ms >= row[BASE_TIME]
            row[TOMBSTONE], row[DROPS_TOMBSTONES] = 0 if has_passed else 1, has_passed
        if records * MIN_RECORD_BYTES > end - at - BATCH_OVERHEAD and row[ATTRIBUTES] & 0x37 == 0:
            break
        at, count = end, count + 1
    return count


@_kernel
def index_rows(
    data: NDArray[np.uint8],
    rows: NDArray[np.int64],
    words: NDArray[np.uint64],
    states: NDArray[np.uint8],
    numbers: NDArray[np.int64],
    hash_key: NDArray[np.uint64],
) -> int:
    """Pass 1: DONE, BAD (see BAD_ROW), or the offset of the first record for which there is no room."""
    slots, capacity, first_mark = numbers[SLOTS], numbers[CAPACITY], numbers[FIRST_MARK]
    for row in range(rows.shape[0]):
        at, end, base = rows[row, AT], rows[row, END], rows[row, BASE_OFFSET]
        previous, keyless = -1, 0
        for _ in range(rows[row, COUNT]):
            at, previous, key, key_end, has_value, _timestamp = _record(data, at, end, previous, rows[row, LAST_DELTA])
            if at < 0:
                numbers[BAD_ROW] = row
                return BAD
            offset = base + previous
            if offset < first_mark:
                continue
            if key < 0:
                keyless += 1
                continue
            first, second = hashed(data, key, key_end, hash_key[0], hash_key[1])
            slot = _slot(words, slots, first, second)
            before = np.int64(words[slot + 2]) - 1
            if before < 0:
                if numbers[SIZE] >= capacity:
                    return offset  # type: ignore[no-any-return]
                words[slot], words[slot + 1] = first, second
                numbers[SIZE] += 1
            elif before - first_mark < len(states):
                states[before - first_mark] = 0
            words[slot + 2] = np.uint64(offset + 1)
            if offset - first_mark < len(states):
                states[offset - first_mark] = 1 if has_value else rows[row, TOMBSTONE]
        if at != end:
            numbers[BAD_ROW] = row
            return BAD
        if base >= first_mark and base + rows[row, LAST_DELTA] - first_mark < len(states):
            numbers[KEYLESS] += keyless
    return DONE


@_kernel
def look_rows(
    data: NDArray[np.uint8],
    rows: NDArray[np.int64],
    words: NDArray[np.uint64],
    states: NDArray[np.uint8],
    numbers: NDArray[np.int64],
    hash_key: NDArray[np.uint64],
    found: NDArray[np.int64],
    ranges: NDArray[np.int64],
) -> int:
    """Pass 2: what stays of each batch, into `found` and `ranges` (two places for each record). DONE or BAD."""
    slots, first_mark, latest = numbers[SLOTS], numbers[FIRST_MARK], numbers[LATEST]
    filled = 0
    for row in range(rows.shape[0]):
        at, end, base = rows[row, AT], rows[row, END], rows[row, BASE_OFFSET]
        last = base + rows[row, LAST_DELTA]
        is_marked = base >= first_mark and last - first_mark < len(states) and last <= latest
        found[row, RANGES_FROM] = found[row, RANGES_TO] = filled
        found[row, GONE_KEYLESS] = found[row, LARGEST] = 0
        if base > latest:
            found[row, STAYING], found[row, TOMBSTONES] = rows[row, COUNT], 0
            continue
        staying, tombstones, keyless = 0, 0, 0
        if is_marked:
            for offset in range(base - first_mark, last - first_mark + 1):
                staying += states[offset] != 0
                tombstones += states[offset] == 2
            found[row, STAYING], found[row, TOMBSTONES] = staying, tombstones
            if staying == 0 or (staying == rows[row, COUNT] and tombstones == 0):
                continue
            staying = tombstones = 0
        previous, largest, open_at = -1, LEAST, -1
        for _ in range(rows[row, COUNT]):
            start = at
            at, previous, key, key_end, has_value, timestamp = _record(data, at, end, previous, rows[row, LAST_DELTA])
            if at < 0:
                numbers[BAD_ROW] = row
                return BAD
            offset = base + previous
            if is_marked:
                stays = states[offset - first_mark] != 0
                is_tombstone = states[offset - first_mark] == 2
            elif offset > latest:
                stays, is_tombstone = True, False
            elif key < 0:
                keyless += 1
                stays, is_tombstone = False, False
            else:
                is_tombstone = has_value == 0
                stays = not (is_tombstone and rows[row, DROPS_TOMBSTONES])
                if stays:
                    first, second = hashed(data, key, key_end, hash_key[0], hash_key[1])
                    stays = offset >= np.int64(words[_slot(words, slots, first, second) + 2]) - 1
            if stays:
                staying += 1
                tombstones += is_tombstone
                largest = max(largest, timestamp)
                if open_at < 0:
                    open_at = start
            elif open_at >= 0:
                ranges[filled], ranges[filled + 1] = open_at, start
                filled += 2
                open_at = -1
        if at != end:
            numbers[BAD_ROW] = row
            return BAD
        if open_at >= 0:
            ranges[filled], ranges[filled + 1] = open_at, end
            filled += 2
        found[row, STAYING], found[row, TOMBSTONES], found[row, GONE_KEYLESS] = staying, tombstones, keyless
        found[row, LARGEST], found[row, RANGES_TO] = largest, filled
        numbers[KEYLESS] += keyless
    return DONE
