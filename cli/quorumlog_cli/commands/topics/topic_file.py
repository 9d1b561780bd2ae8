"""A file of topics for `quorumlog topic create -f`: JSON or TOML, and what `topic describe -o json` prints.

{"topics":[{"topic":"orders","partitions":6,"replication_factor":3,"configs":{"retention.ms":86400000}}]}. A list of
such entries and one alone are read as well; in TOML each entry is `[[topics]]`. `assignment` instead of numbers names
the brokers of each partition. Of a description, partitions are counted, and brokers are not taken: another cluster may
have others. Another key is an error: a word that was misspelt would make a topic that was not meant.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from quorumlog_cli.terminal.errors import CliError, Exit

MAX_CHARACTERS = 16 * 1024 * 1024
MAX_TOPICS = 100_000
DEFAULT = -1  # of the cluster
MAX_NUMBER = 2**31 - 1  # of partitions, replicas, and a broker's id
KEYS = ("topic", "partitions", "replication_factor", "assignment", "configs")
SHOWN_ONLY = ("topic_id", "state")  # of a description
_TOML = re.compile(r"\s*(#|\[\[?\s*[A-Za-z\"]|[A-Za-z_\"][\w.\"-]*\s*=)")
_HEADER = re.compile(r"^\s*\[\[\s*topics\s*\]\]", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTopic:
    """partitions, replication: DEFAULT with an assignment, which names the brokers of each partition."""

    name: str
    partitions: int = DEFAULT
    replication: int = DEFAULT
    assignment: tuple[tuple[int, ...], ...] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


def wanted_topics(text: str, file: str) -> list[WantedTopic]:
    """In the file's order. file: its name, for messages; its ending says which form it has.

    Raises CliError(DATA_INVALID), which names the line and the field, but of what is made to be read by nobody.
    """
    try:
        return _wanted_topics(text, file)
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, half characters, endless nesting
        raise CliError(Exit.DATA_INVALID, f"{file} cannot be read: {error}") from None


def _wanted_topics(text: str, file: str) -> list[WantedTopic]:
    """Raises CliError, ValueError, RecursionError."""
    if len(text) > MAX_CHARACTERS:
        raise CliError(Exit.DATA_INVALID, f"{file} has {len(text):,} characters; {MAX_CHARACTERS:,} are read at most")
    is_toml = file.endswith(".toml") or (not file.endswith(".json") and _TOML.match(text) is not None)
    entries = _of_toml(text, file) if is_toml else _of_json(text, file)
    wanted: dict[str, WantedTopic] = {}
    for entry in entries:
        topic = _topic(entry)
        if topic.name in wanted:
            raise entry.bad("topic", f"{topic.name!r} stands in the file twice")
        wanted[topic.name] = topic
    if not wanted:
        raise CliError(Exit.DATA_INVALID, f"{file} names no topic")
    if len(wanted) > MAX_TOPICS:
        raise CliError(Exit.DATA_INVALID, f"{file} names {len(wanted):,} topics; {MAX_TOPICS:,} are read at most")
    return list(wanted.values())


@dataclass(frozen=True, slots=True)
class _Entry:
    """value: of one topic. text: of the whole file; it stands at [begin, end)."""

    file: str
    value: Any
    text: str
    begin: int
    end: int

    def bad(self, key: str, why: str) -> CliError:
        """key: the field, perhaps of `configs`; of one that TOML has put together from tables, its end is found."""
        at, words = self.begin, key.split(".")
        for first in range(len(words)):
            written = re.escape(".".join(words[first:]))
            found = re.compile(rf"\"{written}\"\s*[:=]|(?<![\w-]){written}\s*=").search(self.text, self.begin, self.end)
            if found is not None:
                at = found.end()
                break
        return _bad(self.file, self.text.count("\n", 0, at) + 1, f"{key}: {why}")


def _bad(file: str, line: int, why: str) -> CliError:
    return CliError(Exit.DATA_INVALID, f"{file}, line {line}: {why}", "quorumlog topic create --help shows a file")


def _of_json(text: str, file: str) -> Iterator[_Entry]:
    try:
        document = json.loads(text, parse_float=str, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise _bad(file, error.lineno, f"not JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise _bad(file, 1, f"not JSON: {error}") from None
    if isinstance(document, dict) and "topics" not in document:
        yield _Entry(file, document, text, 0, len(text))
        return
    if isinstance(document, dict) and (unknown := sorted(set(document) - {"topics"})):
        raise _bad(file, 1, f"{unknown[0]!r} beside topics is not known")
    listed = document["topics"] if isinstance(document, dict) else document
    if not isinstance(listed, list):
        raise _bad(file, 1, 'no document of the form {"topics":[...]}')
    begins = _places(text, text.index("[", text.index('"topics"') if isinstance(document, dict) else 0) + 1)
    for value, (begin, end) in zip(listed, begins, strict=True):
        yield _Entry(file, value, text, begin, end)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError: of two values for one key, only one could be meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands in an object twice")
    return found


def _places(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Where each value of a list stands, which is known to be JSON. at: behind its bracket."""
    decoder = json.JSONDecoder(parse_float=str)
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "]":
            return
        _, end = decoder.raw_decode(text, at)
        yield at, end
        at = end


def _of_toml(text: str, file: str) -> Iterator[_Entry]:
    try:
        document = tomllib.loads(text, parse_float=str)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        raise _bad(file, int(line[1]) if line else 1, f"not TOML: {error}") from None
    listed = document.pop("topics", None)
    if document:
        raise _bad(file, 1, f"{sorted(document)[0]!r} beside topics is not known")
    if not isinstance(listed, list):
        raise _bad(file, 1, "no [[topics]]")
    begins = [match.start() for match in _HEADER.finditer(text)]
    if len(begins) != len(listed):  # written as topics = [{...}], or a header stands in a text
        begins = [0] * len(listed)
        ends = [len(text)] * len(listed)
    else:
        ends = [*begins[1:], len(text)]
    for value, begin, end in zip(listed, begins, ends, strict=True):
        yield _Entry(file, value, text, begin, end)


def _topic(entry: _Entry) -> WantedTopic:
    value = entry.value
    if not isinstance(value, dict):
        raise entry.bad("topic", f"{value!r} is no topic; expected an object with its name as topic")
    for key in value:
        if key not in (*KEYS, *SHOWN_ONLY):
            raise entry.bad(key, f"is none of {', '.join(KEYS)}")
    name = value.get("topic")
    if not isinstance(name, str) or not name:
        raise entry.bad("topic", "is missing" if name is None else f"{name!r} is no name")
    name.encode()  # half of a surrogate pair is no text
    assignment = _assignment(entry, value["assignment"]) if "assignment" in value else None
    if assignment is not None and (other := next((key for key in KEYS[1:3] if key in value), "")):
        raise entry.bad(other, "assignment says it already; leave one of them out")
    return WantedTopic(
        name=name,
        partitions=_partitions(entry, value.get("partitions", DEFAULT)),
        replication=_number(entry, "replication_factor", value.get("replication_factor", DEFAULT)),
        assignment=assignment,
        configs=_configs(entry, value.get("configs", {})),
    )


def _partitions(entry: _Entry, value: Any) -> int:
    """Their number, also where a description lists them."""
    return len(value) if isinstance(value, list) and value else _number(entry, "partitions", value)


def _number(entry: _Entry, key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not (value == DEFAULT or 1 <= value <= MAX_NUMBER):
        raise entry.bad(key, f"{value!r} is no number from 1 to {MAX_NUMBER}, nor {DEFAULT} for the cluster's default")
    return value


def _assignment(entry: _Entry, value: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list) or not value:
        raise entry.bad("assignment", f"{value!r} is no list of the brokers of each partition, such as [[1,2],[2,1]]")
    for index, brokers in enumerate(value):
        if not (
            isinstance(brokers, list)
            and brokers
            and all(type(one) is int and 0 <= one <= MAX_NUMBER for one in brokers)
        ):
            raise entry.bad("assignment", f"partition {index} has {brokers!r}, which is no list of broker ids")
        if len(set(brokers)) < len(brokers):
            raise entry.bad("assignment", f"partition {index} names a broker twice")
    return tuple(tuple(brokers) for brokers in value)


def _configs(entry: _Entry, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        why = "this description could not see them" if value is None else f"{value!r} is no object of keys and values"
        raise entry.bad("configs", why)
    return dict(_flat(entry, "", value))


def _flat(entry: _Entry, before: str, value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """`retention.ms = 1` is a table in a table to TOML."""
    for key, one in value.items():
        name = before + key
        if isinstance(one, dict):
            yield from _flat(entry, f"{name}.", one)
        else:
            text = _value(entry, name, one)
            f"{name}{text}".encode()
            yield name, text


def _value(entry: _Entry, key: str, value: Any) -> str:
    """As Kafka takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return ",".join(value)
    if not isinstance(value, str | int):
        raise entry.bad(key, f"{value!r} is neither text, number, true nor false")
    return str(value)
