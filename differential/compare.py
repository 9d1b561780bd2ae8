"""Two answers, field by field.

What must differ is taken out by its field's name, and nothing else: ids that a side gives out become the names under
which the sequence knows them, so that an id of the wrong topic is still seen. Arrays of structs are compared by what
names their elements, not by their order, which Kafka draws from hash tables; what is answered twice alike counts once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

from differential.builders import EPOCH_MS, STRANGER
from differential.conversation import Answer
from differential.step import NO_ID, Book, Step
from quorumlog.records.format.batch import BATCH_OVERHEAD, headers
from quorumlog.records.format.compression import BadCompression, decompress
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.records.format.record import read_record
from quorumlog.records.format.varint import Malformed

# What names an element of an array, the first ones that it has. Two of one name are told apart by their places.
NAMING = (
    "name", "topic", "topic_name", "topic_id", "group_id", "transactional_id", "resource_type", "resource_name", "key",
    "api_key", "member_id", "partition_index", "partition", "index", "partition_id", "broker_id", "node_id",
    "replica_id",
    "producer_id", "log_dir", "base_offset", "feature",
)  # fmt: skip
SEQUENCE = re.compile(r"d\d+-\d+-")
MADE = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")  # what a side puts behind the name of an instance
INTERNAL, METADATA_TOPIC = "__", "__cluster_metadata"
LISTING = ("list_groups", "list_transactions")
ABSENT = "<absent>"
YEAR_MS = 366 * 24 * 3_600_000
Normal = Callable[[Any, Book], Any]


class Difference(NamedTuple):
    """path: names of fields, with the names of elements in brackets."""

    path: str
    theirs: Any
    ours: Any


def _alias(kind: str) -> Normal:
    def normal(value: Any, book: Book) -> Any:
        label = book.label_of(kind, value)
        return value if label is None or not value or value == -1 else f"<{label}>"

    return normal


def _topic_id(value: Any, book: Book) -> Any:
    if value in (NO_ID, None):
        return "<none>"
    return f"<{book.label_of('topic', value) or 'another topic'}>"


def _producer_id(value: Any, book: Book) -> Any:
    return value if value < 0 else f"<{book.label_of('producer', value) or 'another producer'}>"


def _hidden(value: Any, _book: Book) -> Any:
    return value if value is None else "<...>"


def _time(value: Any, _book: Book) -> Any:
    return value if value is None or value <= 0 else "<time>"


def _clock(value: Any, _book: Book) -> Any:
    """A record's time, or the broker's, which is years later."""
    return "<time>" if value > EPOCH_MS + YEAR_MS else value


def _text(value: Any, _book: Book) -> Any:
    return "<text>" if value else value


def _session(value: Any, _book: Book) -> Any:
    return "<session>" if value else value


def _member(value: Any, book: Book) -> Any:
    if not value or value == STRANGER:
        return value
    own = MADE.sub("", value) if SEQUENCE.match(value) else "another member"
    return f"<{book.label_of('member', value) or own}>"


# By the field's name. Everything else is compared as it is.
NORMAL: dict[str, Normal] = {
    "topic_id": _topic_id, "producer_id": _producer_id, "member_id": _member, "leader": _member,
    "cluster_id": _hidden, "port": _hidden, "throttle_time": _hidden, "log_dir": _hidden, "usable_bytes": _hidden,
    "total_bytes": _hidden, "voter_directory_id": _hidden, "replica_directory_id": _hidden, "client_host": _hidden,
    "session_id": _session, "error_message": _text, "batch_index_error_message": _text,
    "log_append_time": _time, "transaction_start_time": _time, "last_timestamp": _time,
    "last_fetch_timestamp": _time, "last_caught_up_timestamp": _time,
    "finalized_features_epoch": _time, "documentation": _text,
}  # fmt: skip
# Of these APIs some names mean something else. Where the metadata log is, nobody can compare.
ALSO: dict[tuple[str, str], Normal] = {
    ("list_offsets", "timestamp"): _clock,
    ("describe_quorum", "log_end_offset"): _time, ("describe_quorum", "high_watermark"): _time,
    ("describe_quorum", "leader_epoch"): _time, ("describe_quorum", "name"): _text,
}  # fmt: skip


def differences(step: Step, theirs: Answer, ours: Answer, books: tuple[Book, Book], prefix: str) -> list[Difference]:
    """All, with what is wanted among them. prefix: of the sequence's names."""
    left, right = (normal(step, answer, book, prefix) for answer, book in zip((theirs, ours), books, strict=True))
    return list(_differences("", left, right))


def normal(step: Step, answer: Answer, book: Book, prefix: str) -> Any:
    """The answer without what must differ. Elements of other sequences, and of internal topics, are left out."""
    return answer if isinstance(answer, str) else _normal(step.api, answer, book, prefix)


def _normal(api: str, values: Any, book: Book, prefix: str) -> Any:
    if isinstance(values, dict):
        found = {}
        for name, value in values.items():
            rule = ALSO.get((api, name)) or NORMAL.get(name)
            if name == "records":
                found[name] = batches(value, book)
            elif rule is not None:
                found[name] = rule(value, book)
            else:
                found[name] = _normal(api, value, book, prefix)
        return found
    if isinstance(values, list):
        lists_all = api in LISTING
        return [_normal(api, one, book, prefix) for one in values if not _is_foreign(one, prefix, lists_all)]
    if isinstance(values, tuple):
        return list(values)
    return bytes(values) if isinstance(values, memoryview) else values


def _is_foreign(one: Any, prefix: str, lists_all: bool) -> bool:
    """lists_all: the answer is about whatever there is, so a name that is not the sequence's is another one's."""
    if not isinstance(one, dict):
        return False
    names = [one.get(name) for name in ("name", "topic", "topic_name", "group_id", "transactional_id")]
    for name in names:
        if isinstance(name, str) and (lists_all or _is_internal(name) or SEQUENCE.match(name)):
            return not name.startswith(prefix)
    return False


def _is_internal(name: str) -> bool:
    return name.startswith(INTERNAL) and name != METADATA_TOPIC


def batches(data: Any, book: Book) -> Any:
    """The batches of a fetch answer with their records, or what is wrong with them."""
    if data is None:
        return None
    found = []
    try:
        for header in headers(data, partial_tail=True):
            found.append(
                {
                    "base_offset": header.base_offset, "last_offset": header.last_offset,
                    "leader_epoch": header.leader_epoch, "magic": header.magic, "attributes": header.attributes,
                    "base_timestamp": header.base_timestamp, "max_timestamp": header.max_timestamp,
                    "producer_id": _producer_id(header.producer_id, book), "producer_epoch": header.producer_epoch,
                    "base_sequence": header.base_sequence, "count": header.count,
                    "rows": _rows(bytes(data[header.position + BATCH_OVERHEAD : header.end]), header),
                }
            )  # fmt: skip
    except (CorruptRecords, BadCompression, Malformed) as error:
        found.append({"base_offset": "damaged", "reason": str(error)})
    for batch in found:
        if batch.get("attributes", 0) & 0x08:  # the broker's clock is in it
            batch["max_timestamp"] = "<time>"
        if batch.get("attributes", 0) & 0x20:
            batch["base_timestamp"] = batch["max_timestamp"] = "<time>"
            batch["rows"] = [row[2:] for row in batch["rows"]]
    return found


def _rows(stored: bytes, header: Any) -> list[Any]:
    data, position, rows = bytes(decompress(header.codec, stored)), 0, []
    for _ in range(header.count):
        fields, position = read_record(data, position, header.base_offset, header.base_timestamp)
        rows.append(list(fields))
    return rows


def _differences(path: str, theirs: Any, ours: Any) -> Iterator[Difference]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in dict.fromkeys((*theirs, *ours)):
            below = f"{path}.{name}" if path else name
            yield from _differences(below, theirs.get(name, ABSENT), ours.get(name, ABSENT))
    elif isinstance(theirs, list) and isinstance(ours, list) and _are_structs(theirs, ours):
        left, right = _by_names(theirs), _by_names(ours)
        for name in dict.fromkeys((*left, *right)):
            yield from _differences(f"{path}[{name}]", left.get(name, ABSENT), right.get(name, ABSENT))
    elif isinstance(theirs, list) and isinstance(ours, list):
        if sorted(theirs, key=repr) != sorted(ours, key=repr):
            yield Difference(path, theirs, ours)
    elif theirs != ours:
        yield Difference(path, theirs, ours)


def _are_structs(theirs: list[Any], ours: list[Any]) -> bool:
    return all(isinstance(one, dict) for one in (*theirs, *ours)) and bool(theirs or ours)


def _by_names(elements: list[Any]) -> dict[str, Any]:
    """Elements of one name that hold arrays are one element: Kafka answers by topic what was asked one by one."""
    found: dict[str, Any] = {}
    for element in sorted(elements, key=repr):
        name = ":".join(str(element[one]) for one in NAMING if element.get(one) not in (None, "<none>"))
        if name not in found:
            found[name] = element
        elif (merged := _merged(found[name], element)) is not None:
            found[name] = merged
        elif element not in found.values():
            number = next(number for number in count(2) if f"{name}#{number}" not in found)
            found[f"{name}#{number}"] = element
    return found


def _merged(one: Any, other: Any) -> Any:
    """Both as one, if they differ in arrays of structs only; else None."""
    arrays = [
        name for name, value in one.items() if isinstance(value, list) and _are_structs(value, other.get(name) or [])
    ]
    if not arrays or any(one[name] != other.get(name) for name in one if name not in arrays):
        return None
    return {**one, **{name: [*one[name], *other[name]] for name in arrays}}
