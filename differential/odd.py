"""One odd value in a meaningful request: null, nothing, twice the same, negative, huge, unknown.

Which fields a version has is found by writing the request and reading it again with the version's own schema.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterator
from typing import Any

from differential.builders import NOBODY, STRANGE_ID, World
from differential.step import Batch, Book, Ref, Values
from quorumlog.wire.format.cursor import Cursor, Malformed
from quorumlog.wire.format.frame_writer import LENGTH_BYTES, FrameWriter
from quorumlog.wire.format.kio_schemas import request_shape

# Waits: a huge one would only be waited for. The numbers of real nodes would be obeyed. At an unknown operation Kafka's
# controller gives up its leadership, and all else fails for a while; at a subscription that it cannot read its
# coordinator never answers, and a protocol that a member names twice it counts twice, so that no other member fits; at
# a voter's listener without a name its process ends. With the last epoch of all it aborts a transaction before it
# refuses the producer. A Produce with null for records it does not answer (`_odd_values`).
LEFT_ALONE = {
    ("unregister_broker", "broker_id"), ("remove_raft_voter", "voter_id"), ("add_raft_voter", "voter_id"),
    ("fetch", "max_wait"), ("fetch", "min_bytes"), ("join_group", "rebalance_timeout"), ("join_group", "protocols"),
    ("incremental_alter_configs", "config_operation"), ("add_raft_voter", "listeners"),
    ("init_producer_id", "producer_epoch"),
}  # fmt: skip
# Kafka makes what it is asked for, up to ten thousand partitions at once, and a million elements take a minute.
SMALL = {("create_topics", "num_partitions"), ("create_partitions", "count")}
WIDTHS = (63, 31, 15, 7)
LONG_TEXT = "x" * 300
Place = tuple[Any, ...]  # names of fields and positions in arrays, from the outside in


def fields_of(api: str, version: int, values: Values) -> Values | None:
    """The request as its version has it, with each field that it has. None: it cannot be written."""
    shape, writer = request_shape(api, version), FrameWriter()
    try:
        shape.write(writer, Book().resolve(values))
        data = b"".join(bytes(part) for part in writer.frame())[LENGTH_BYTES:]
        return shape.read(Cursor(memoryview(data)))
    except (struct.error, Malformed, AttributeError, TypeError):  # a text where an array belongs
        return None


def with_odd_value(world: World, api: str, version: int, values: Values) -> tuple[Values, str]:
    """The request with one odd value, and what is odd in it, for people. The same request and "" if it has no field."""
    rng = world.rng
    fields = fields_of(api, version, values)
    places = list(_places(api, values, fields, ())) if fields is not None else []
    rng.shuffle(places)
    for place in places:
        assert fields is not None
        is_small = (api, str(place[-1])) in SMALL
        odd = rng.choice(_odd_values(world.prefix, _at(values, place), _at(fields, place), is_small))
        changed = _fitting(api, version, values, place, odd)
        if changed is not None:
            return changed, f"{'.'.join(map(str, place))} = {_told(_at(changed, place))}"
    return values, ""


def _places(api: str, template: Any, fields: Any, at: Place) -> Iterator[Place]:
    if isinstance(fields, dict) and isinstance(template, dict):
        for name, value in fields.items():
            if name in template and (api, name) not in LEFT_ALONE:
                yield (*at, name)
                yield from _places(api, template[name], value, (*at, name))
    elif isinstance(fields, list | tuple) and isinstance(template, list | tuple):
        for number, (one, value) in enumerate(zip(template, fields, strict=False)):
            yield from _places(api, one, value, (*at, number))


def _odd_values(prefix: str, template: Any, value: Any, is_small: bool) -> list[Any]:
    """Other values for a field. value: as it was read. prefix: names are of this sequence only."""
    if isinstance(template, Batch):
        return [b"", *(_damaged(template, how) for how in DAMAGES), [template, template]]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        ends = [] if is_small else ["least", "most", 2**31 - 1]
        return [-1, 0, -2, NOBODY, *ends]
    if isinstance(value, str) or (value is None and isinstance(template, str | Ref | None)):
        return ["", None, *(prefix + text for text in ("unknown", LONG_TEXT, "a/b", "ä€", " "))]
    if isinstance(value, bytes | memoryview):
        return [STRANGE_ID, bytes(16)] if len(value) == 16 else [b"", None, b"\xff" * 5]
    if isinstance(template, list | tuple):
        twice = [*template, *template]
        return [[], None, twice, [*template, *template[:1]]]
    return [None]


def _damaged(batch: Batch, how: Callable[[bytes], bytes]) -> Batch:
    return Batch(
        rows=batch.rows, times=batch.times, codec=batch.codec, producer=batch.producer, epoch=batch.epoch,
        sequence=batch.sequence, transactional=batch.transactional, damage=how,
    )  # fmt: skip


def _flip(position: int) -> Callable[[bytes], bytes]:
    def flipped(data: bytes) -> bytes:
        return data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :]

    return flipped


def _cut(data: bytes) -> bytes:
    return data[:-3]


def tailed(data: bytes) -> bytes:
    return data + b"tail"


def _old_magic(data: bytes) -> bytes:
    return data[:16] + b"\1" + data[17:]


DAMAGES: tuple[Callable[[bytes], bytes], ...] = (_flip(17), _flip(62), _flip(11), _flip(3), _cut, tailed, _old_magic)


def _fitting(api: str, version: int, values: Values, place: Place, odd: Any) -> Values | None:
    """A copy with the odd value; for an end of a number's range, that of the field's width. None: it cannot be sent."""
    choices = [odd]
    if odd == "least":
        choices = [-(2**width) for width in WIDTHS]
    elif odd == "most":
        choices = [2**width - 1 for width in WIDTHS]
    for choice in choices:
        changed = copy.deepcopy(values)
        target = _at(changed, place[:-1])
        target[place[-1]] = choice
        if fields_of(api, version, changed) is not None or isinstance(choice, Batch):
            return changed
    return None


def _at(values: Any, place: Place) -> Any:
    for step in place:
        values = values[step]
    return values


def _told(value: Any) -> str:
    if isinstance(value, Batch):
        return "a damaged batch"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}... ({len(text)} characters)"
