"""What a page of records was asked for, from its address, and the addresses of pages like it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from starlette.datastructures import QueryParams

from quorumlog.client.looking.forms import Form
from quorumlog.client.looking.json_text import NotJson
from quorumlog.client.looking.matching import BadCondition, How, Part, Where, make_condition, read_where
from quorumlog.client.looking.place import MAX_OFFSET, BadPlace
from quorumlog.client.looking.search import EVERYTHING
from quorumlog.client.looking.times import read_time

COUNTS = (10, 25, 50, 100, 250)
DEFAULT_COUNT = 25
MAX_FIELD = 4_096  # characters
STARTS = {"newest": "the newest", "oldest": "the oldest", "offset": "from an offset", "time": "from a time"}


class BadAddress(ValueError):
    """A field that cannot be used. For the person who filled it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """fields: as they were given, to fill the form again. start: of STARTS, or "" where `place` says it."""

    topic: str
    fields: dict[str, str]
    start: str = "newest"
    offset: int = 0
    time_ms: int = 0
    partitions: tuple[int, ...] | None = None
    count: int = DEFAULT_COUNT
    place: str = ""
    form: Form | None = None
    sees_uncommitted: bool = False
    where: Where = EVERYTHING

    @property
    def path(self) -> str:
        return f"/topics/{quote(self.topic, safe='')}/messages"

    def address(self, page: str = "", **changes: str) -> str:
        """The same page with other fields; empty ones are left out. page: one below it."""
        values = {name: value for name, value in {**self.fields, **changes}.items() if value}
        return self.path + page + (f"?{urlencode(values)}" if values else "")


def asked_of(topic: str, given: QueryParams, now_ms: int) -> Asked:
    """Raises BadAddress."""
    fields = {name: given.get(name, "") for name in FIELDS}
    if any(len(value) > MAX_FIELD for name, value in fields.items() if name != "place"):
        raise BadAddress(f"A field may have {MAX_FIELD} characters at most.")
    start = fields["from"] or "newest"
    if start not in STARTS:
        raise BadAddress(f"Records are shown from {', '.join(STARTS)}; not from {start}.")
    try:
        return Asked(
            topic=topic,
            fields=fields,
            start=start,
            offset=_number(fields["offset"], "Offset") if start == "offset" else 0,
            time_ms=_time(fields["time"], now_ms) if start == "time" else 0,
            partitions=_partitions(fields["partition"]),
            count=int(fields["n"]) if fields["n"] in map(str, COUNTS) else DEFAULT_COUNT,
            place=fields["place"],
            form=Form(fields["form"]) if fields["form"] in [*Form] else None,
            sees_uncommitted=fields["uncommitted"] == "1",
            where=_where(fields),
        )
    except (BadCondition, BadPlace, NotJson) as error:
        raise BadAddress(sentence(error)) from error


def sentence(error: ValueError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."


FIELDS = (
    "from", "offset", "time", "partition", "n", "key", "value", "header", "header_value", "where", "form",
    "uncommitted", "place",
)  # fmt: skip


def _where(fields: dict[str, str]) -> Where:
    """The fields key, value and header are taken to the letter; a condition is read. All have to fit."""
    made = []
    if fields["key"]:
        made.append(make_condition(Part.KEY, How.EQUALS, json.dumps(fields["key"])))
    if fields["value"]:
        made.append(make_condition(Part.VALUE, How.CONTAINS, json.dumps(fields["value"])))
    if fields["header"]:
        how = How.EQUALS if fields["header_value"] else How.EXISTS
        made.append(make_condition(Part.HEADER, how, json.dumps(fields["header_value"]), header=fields["header"]))
    return Where((*made, *read_where([fields["where"]]).conditions))


def _partitions(text: str) -> tuple[int, ...] | None:
    """Numbers with commas between them. None: all."""
    if not text.strip():
        return None
    return tuple(sorted({_number(part, "Partition", 2**31 - 1) for part in text.split(",") if part.strip()}))


def _number(text: str, what: str, most: int = MAX_OFFSET) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= most):
        raise BadAddress(f"{what} is a number from 0 on; {text!r} is none.")
    return int(text)


def _time(text: str, now_ms: int) -> int:
    """Raises BadAddress."""
    try:
        return read_time(text, now_ms)
    except ValueError as error:
        raise BadAddress(f"{error}.") from error
