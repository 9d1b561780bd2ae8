"""Walks over the records of a produced batch and checks their form, without an object for each; finds their times.

Three ways, from the fastest to the most exact. A *run* of records of one layout (a load test, a sensor, fixed-size
rows) is checked by columns: every byte that is not part of a key or a value is cut out with a stride and compared for
all records at once. A *usual* record is walked over in a loop of a few integers. Everything else, the reason of a
refusal included, is left to `unusual_record`, which alone may refuse. The two fast ways accept only what it would
accept. The format: KIP-98, `record.py`. A produced batch numbers its records from 0 without gaps. Times are deltas
here: what a record's timestamp is above the batch's base.
"""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, NamedTuple

from quorumlog.records.format.varint import VARLONG_BYTES, Malformed, read_varint
from quorumlog.slices import Sliced

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_RUN = 8  # records that must seem alike before a run is tried
RUN_PAUSE = 64  # records until the next try, after one in vain
SAFE_TIMESTAMP_BYTES = 8  # a delta of so many bytes cannot overflow a base below SAFE_BASE_TIMESTAMP
SAFE_BASE_TIMESTAMP = 2**62
MAX_USUAL_INDEX = 2**20  # exclusive: from here on the varint of an offset delta has four bytes
ZIGZAG_HEADERS_PER_RECORD = 8  # in a slice, so many headers (doubled, as their varint is) count as one more record
NOWHERE = 2**62  # a position that no data has: reading there ends the walk
NO_LEAST, NO_MOST = 2**64, -(2**64)  # smallest and largest of no deltas at all
HEADERS_PER_STEP = 2_000  # of one record, between two steps of `unusual_record`
MAX_TIMESTAMP_SHIFT = 7 * (SAFE_TIMESTAMP_BYTES - 1)  # of the last byte of a usual time delta
NO_RUN = (0, NO_LEAST, NO_MOST)

_NUMBERS = {array(code).itemsize: code for code in "HILQ"}  # bytes of a number -> its format
_NEGATIVE, _NOT_NEGATIVE = bytes(range(1, 256, 2)), bytes(range(0, 256, 2))  # first bytes of zigzag varints
_ASCII = bytes(range(128))  # last bytes of varints
_CONTINUED = bytes(range(128, 256))  # the other bytes of varints
# The low two bytes of the varint of every offset delta, which repeat after 8,192 records: zigzag, then 7 bits each.
_PERIOD = 8_192
_LOW = bytes(2 * delta & 0x7F for delta in range(64)) * (_PERIOD // 64)
_LOW_CONTINUED = bytes(byte | 0x80 for byte in _LOW)
_HIGH = bytes(2 * delta >> 7 for delta in range(_PERIOD))
_HIGH_CONTINUED = bytes(byte | 0x80 for byte in _HIGH)


class Walked(NamedTuple):
    """Where a walk stopped. least, most: of the time deltas that were met so far."""

    position: int
    number: int  # of the first record that is not checked
    left: int  # of `single`
    least: int = NO_LEAST
    most: int = NO_MOST


class Unusual(NamedTuple):
    """One record, looked at exactly. end: the position after it. headers: how many it has."""

    end: int
    headers: int
    time_delta: int
    has_key: bool


def walk_usual(
    data: bytes | bytearray,
    position: int,
    index: int,
    count: int,
    single: int,
    keys_required: bool,
    least: int = NO_LEAST,
    most: int = NO_MOST,
) -> Walked:
    """Where the first record lies that is not checked, and the time deltas of those before it.

    data: records; the last one may be incomplete. position: where the record number `index` begins. Stops at record
    number `count`, after `single` records that were not part of a run (what is left may be a little below 0), at an
    unusual record, or at an incomplete one.
    The caller has made sure that timestamp deltas of SAFE_TIMESTAMP_BYTES cannot overflow. Never raises. It is one long
    loop because a call for each record would double its time.
    """
    size = len(data)
    allowed = index + single  # where `single` ends
    stop = min(count, allowed)
    previous, next_try = -1, index
    time_delta = 0
    try:
        while index < stop:
            length = data[position]
            at = position + 1
            if length > 0x7F:
                byte = data[at]
                at += 1
                length += (byte << 7) - 0x80
                if byte > 0x7F:
                    byte = data[at]
                    at += 1
                    length += (byte << 14) - 0x4000
                    if byte > 0x7F:
                        break
            end = at + (length >> 1)
            if length & 1 or end > size:
                break
            if length == previous and index >= next_try:
                alike, run_least, run_most = _run(data, position, end - position, index, count, keys_required)
                if alike < MIN_RUN:
                    next_try = index + RUN_PAUSE
                else:
                    least, most = min(least, run_least), max(most, run_most)
                    position += alike * (end - position)
                    index += alike
                    allowed += alike
                    stop = min(count, allowed)
                    continue
            previous = length
            time_delta = data[at + 1]  # after the attributes
            at += 2
            if time_delta > 0x7F:
                byte = data[at]
                at += 1
                time_delta += (byte << 7) - 0x80
                if byte > 0x7F:
                    shift = 7
                    while byte > 0x7F and shift < MAX_TIMESTAMP_SHIFT:
                        byte = data[at]
                        at += 1
                        shift += 7
                        time_delta += (byte - 1) << shift
                    if byte > 0x7F:
                        break
            time_delta = time_delta >> 1 ^ -(time_delta & 1)
            if index < 64:
                if data[at] != index << 1:
                    break
                at += 1
            elif index < _PERIOD:
                if data[at] != _LOW_CONTINUED[index] or data[at + 1] != _HIGH[index]:
                    break
                at += 2
            elif index < MAX_USUAL_INDEX:
                low = index & (_PERIOD - 1)
                if data[at] != _LOW_CONTINUED[low] or data[at + 1] != _HIGH_CONTINUED[low]:
                    break
                if data[at + 2] != index >> 13:
                    break
                at += 3
            else:
                break
            size_of_key = data[at]
            at += 1
            if size_of_key > 0x7F:
                byte = data[at]
                at += 1
                if byte > 0x7F:
                    break
                size_of_key += (byte << 7) - 0x80
            if not size_of_key & 1:
                at += size_of_key >> 1
            elif size_of_key > 1 or keys_required:
                break
            size_of_value = data[at]
            at += 1
            if size_of_value > 0x7F:
                byte = data[at]
                at += 1
                size_of_value += (byte << 7) - 0x80
                if byte > 0x7F:
                    byte = data[at]
                    at += 1
                    size_of_value += (byte << 14) - 0x4000
                    if byte > 0x7F:
                        break
            if not size_of_value & 1:
                at += size_of_value >> 1
            elif size_of_value > 1:
                break
            headers = data[at]
            at += 1
            if headers:
                if headers > 0x7F or headers & 1:
                    break
                for _ in range(headers >> 1):
                    size_of_name = data[at]
                    at += 1 + (size_of_name >> 1)
                    if size_of_name > 0x7F or size_of_name & 1:
                        at = NOWHERE
                    size_of_value = data[at]
                    at += 1
                    if size_of_value > 0x7F:
                        byte = data[at]
                        at += 1
                        if byte > 0x7F:
                            at = NOWHERE
                        size_of_value += (byte << 7) - 0x80
                    if not size_of_value & 1:
                        at += size_of_value >> 1
                    elif size_of_value > 1:
                        at = NOWHERE
            if at != end:  # lengths that contradict each other
                break
            position = end
            index += 1
            if time_delta > most:
                most = time_delta
            if time_delta < least:
                least = time_delta
            if headers:
                allowed -= headers // ZIGZAG_HEADERS_PER_RECORD
                stop = min(count, allowed)
    except IndexError:  # the data ends inside a record
        pass
    return Walked(position, index, allowed - index, least, most)


def _run(
    data: bytes | bytearray, position: int, stride: int, index: int, count: int, keys_required: bool
) -> tuple[int, int, int]:
    """How many records from `position` on have the layout of the first, and are valid; 0 if too few look alike. And the
    smallest and largest of their time deltas.

    stride: bytes of the first record, all of which are in `data`.
    """
    count = min((len(data) - position) // stride, count - index, _records_of_one_width(index))
    first_bytes = data[position : position + MIN_RUN * stride : stride]
    if count < MIN_RUN or first_bytes != data[position : position + 1] * MIN_RUN:
        return NO_RUN
    layout = _layout(data, position, stride, index)
    if layout is None:
        return NO_RUN
    timestamp_at, delta_at, key_at, key_end, value_at, value_end, has_key = layout
    if keys_required and not has_key:
        return NO_RUN
    constant = (
        *range(position, timestamp_at - 1),  # the length, before the attributes
        *range(key_at, key_end),
        *range(value_at, value_end),
        position + stride - 1,  # no headers
    )
    for at in constant:
        column = data[at : at + count * stride : stride]
        count = min(count, len(column) - len(column.lstrip(data[at : at + 1])))
    for at in range(timestamp_at, delta_at):
        column = data[at : at + count * stride : stride]
        if at < delta_at - 1 or not column.isascii():
            count = len(column) - len(column.lstrip(_ASCII if at == delta_at - 1 else _CONTINUED))
    for place, at in enumerate(range(delta_at, key_at)):
        column = data[at : at + count * stride : stride]
        if column != _delta_column(place, key_at - delta_at, index, count):
            return NO_RUN
    if count < MIN_RUN:
        return NO_RUN
    columns = [data[at : at + count * stride : stride] for at in range(timestamp_at, delta_at)]
    return count, *_time_deltas(columns, count)


def _time_deltas(columns: Sequence[bytes | bytearray], count: int) -> tuple[int, int]:
    """Smallest and largest of `count` varints of one width, whose bytes at each place are a column.

    Their bytes are compared as they are, as one number each: all have the same bits of continuation.
    """
    values: Sequence[int] = columns[0]
    if len(columns) > 1:
        width = next(width for width in _NUMBERS if width >= len(columns))
        packed = bytearray(count * width)
        for place, column in enumerate(columns):
            packed[(place if sys.byteorder == "little" else width - 1 - place) :: width] = column
        values = array(_NUMBERS[width], bytes(packed))
    if not columns[0].translate(None, _NEGATIVE):
        least, most = max(values), min(values)
    elif not columns[0].translate(None, _NOT_NEGATIVE):
        least, most = min(values), max(values)
    else:
        least, most = max(value for value in values if value & 1), max(value for value in values if not value & 1)
    width = len(columns)
    smallest, _ = read_varint(least.to_bytes(width, "little"), 0, width, SAFE_TIMESTAMP_BYTES)
    largest, _ = read_varint(most.to_bytes(width, "little"), 0, width, SAFE_TIMESTAMP_BYTES)
    return smallest, largest


def _layout(
    data: bytes | bytearray, position: int, stride: int, index: int
) -> tuple[int, int, int, int, int, int, bool] | None:
    """Where the first record of a run has its fields, or None if it is not a usual one.

    (timestamp delta, offset delta, key length, its end, value length, its end, whether it has a key): positions in
    `data`, each field ending where the next one begins.
    """
    end = position + stride
    try:
        _, at = read_varint(data, position, end)
        timestamp_at = at + 1
        _, delta_at = read_varint(data, timestamp_at, end, SAFE_TIMESTAMP_BYTES)
        key_at = delta_at + _width(index)
        key_bytes, key_end = read_varint(data, key_at, end)
        value_at = key_end + max(key_bytes, 0)
        value_bytes, value_end = read_varint(data, value_at, end)
    except Malformed:
        return None
    if min(key_bytes, value_bytes) < -1 or value_end + max(value_bytes, 0) + 1 != end:
        return None
    return timestamp_at, delta_at, key_at, key_end, value_at, value_end, key_bytes >= 0


def _width(index: int) -> int:
    """Bytes of the varint of this offset delta."""
    return max(1, ((index << 1).bit_length() + 6) // 7)


def _records_of_one_width(index: int) -> int:
    """How many offset deltas from `index` on differ in their low two bytes only, and have the same width."""
    if index < 64:
        return 64 - index
    return _PERIOD - index % _PERIOD


def _delta_column(place: int, width: int, index: int, count: int) -> bytes:
    """The bytes at `place` of the varints, `width` bytes each, of the offset deltas from `index` on."""
    low = index % _PERIOD
    continued = place < width - 1
    if place == 0:
        return (_LOW_CONTINUED if continued else _LOW)[low : low + count]
    if place == 1:
        return (_HIGH_CONTINUED if continued else _HIGH)[low : low + count]
    byte = (index << 1 >> 7 * place) & 0x7F
    return bytes((byte | 0x80 if continued else byte,)) * count


def unusual_record(data: bytes | bytearray, position: int, index: int, base_timestamp: int) -> Sliced[Unusual]:
    """Checks one record exactly, as `record.read_record` reads it.

    Yields after every HEADERS_PER_STEP headers, because one record may have a million. Raises Malformed.
    """
    length, at = read_varint(data, position, len(data))
    end = at + length
    if length < 1 or end > len(data):
        raise Malformed(f"a record of {length} bytes, {len(data) - at} are left")
    timestamp_delta, at = read_varint(data, at + 1, end, VARLONG_BYTES)
    offset_delta, at = read_varint(data, at, end)
    if offset_delta != index:
        raise Malformed(f"offset delta {offset_delta}, must be {index}")
    if not -(2**63) <= base_timestamp + timestamp_delta < 2**63:
        raise Malformed("a timestamp beyond 64 bits")
    has_key, at = _skip_bytes(data, at, end)
    _, at = _skip_bytes(data, at, end)
    count, at = read_varint(data, at, end)
    if not 0 <= count <= (end - at) // 2:  # a header takes at least two bytes
        raise Malformed(f"{count} headers in {end - at} bytes")
    for number in range(1, count + 1):
        has_name, at = _skip_bytes(data, at, end)
        if not has_name:
            raise Malformed("a header without a name")
        _, at = _skip_bytes(data, at, end)
        if number % HEADERS_PER_STEP == 0:
            yield
    if at != end:
        raise Malformed(f"{end - at} bytes after a record's headers")
    return Unusual(at, count, timestamp_delta, has_key)


def _skip_bytes(data: bytes | bytearray, position: int, end: int) -> tuple[bool, int]:
    """(whether there are bytes, not null; the position after them)."""
    length, position = read_varint(data, position, end)
    if length == -1:
        return False, position
    if not 0 <= length <= end - position:
        raise Malformed(f"{length} bytes of key, value or header, {end - position} are left")
    return True, position + length
