"""What a load asks of the cluster: the partitions with their ends, and the offsets of a time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorumlog.client.blocking_admin import Admin
from quorumlog.client.errors import ConfigError
from quorumlog.client.fetch_position import TopicPartition
from quorumlog.ids import Offset
from quorumlog.spark.cluster import make_admin, place_of, read_spans
from quorumlog.spark.load.choosing import Choice, Wanted, choose
from quorumlog.spark.load.protocol import Choose
from quorumlog.spark.load.records import Layout
from quorumlog.spark.options import ReadOptions, parse_read_options
from quorumlog.spark.places import TimePlace, parse_time
from quorumlog.spark.planning import LogSpan
from quorumlog.spark.stream_planning import by_partition

CLIENT_ID = "spark-quorumlog-load"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A load as the user asks for it. client: options of quorumlog.client, by their underscored names.

    start, until: empty, an offset for all partitions, or a time in ISO 8601. Where no record is at or after a time, it
    is the end. partition_by, isolation_level, table: None: as in the folder.
    """

    topics: tuple[str, ...]
    client: Mapping[str, Any]
    start: str = ""
    until: str = ""
    rows_per_file: int = Layout().rows_per_file
    partition_by: str | None = None
    isolation_level: str | None = None
    table: str | None = None
    skip_lost: bool = False

    def __post_init__(self) -> None:
        """Raises ConfigError for a start and an end that can have nothing between them."""
        start, until = self.start, self.until
        if not start or not until or _is_offset(start) != _is_offset(until):
            return
        begin, end = (_number(option, text) for option, text in (("--from", start), ("--until", until)))
        if begin >= end:
            raise ConfigError(f"--from {start} --until {until}: nothing is between them; give an --until behind --from")


def read_options(request: Request, isolation_level: str, topics: Sequence[str]) -> ReadOptions:
    """As the connector's. Raises ConfigError."""
    given = {f"kafka.{name.replace('_', '.')}": _text(value) for name, value in request.client.items()}
    return parse_read_options(
        {
            "groupIdPrefix": CLIENT_ID,
            **given,
            "subscribe": ",".join(topics),
            "isolationLevel": isolation_level,
            "failOnDataLoss": "false" if request.skip_lost else "true",
        }
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def choose_now(request: Request, asked: Choose) -> Choice | None:
    """Raises what choosing raises, and what the client raises."""
    isolation_level = request.isolation_level or (asked.last.layout if asked.last else Layout()).isolation_level
    options = read_options(request, isolation_level, request.topics)
    with make_admin(options) as admin:
        spans = read_spans(admin, options)
        wanted = Wanted(
            starts=_offsets(admin, "--from", request.start, spans, options),
            ends=_offsets(admin, "--until", request.until, spans, options),
            rows_per_file=request.rows_per_file,
            partition_by=request.partition_by,
            isolation_level=isolation_level,
            table=request.table,
            skip_lost=request.skip_lost,
        )
        cluster_id = admin.describe_cluster().cluster_id
    return choose(asked.last, asked.covered, by_partition(spans), wanted, cluster_id)


def _is_offset(text: str) -> bool:
    return re.fullmatch(r"\d{1,19}", text, re.ASCII) is not None


def _number(option: str, text: str) -> int:
    """An offset, or a time in ms. Raises ConfigError."""
    return int(text) if _is_offset(text) else parse_time(option, text)


def _offsets(
    admin: Admin, option: str, text: str, spans: list[LogSpan], options: ReadOptions
) -> Mapping[TopicPartition, Offset] | None:
    if not text:
        return None
    if _is_offset(text):
        return {(span.topic, span.partition): Offset(int(text)) for span in spans}
    if text.isdigit():
        raise ConfigError(f"{option} {text}: offsets have at most 19 digits")
    place = TimePlace(option=option, times_ms=parse_time(option, text), latest_if_none=True)
    found = place_of(admin, place, spans, options)
    assert not isinstance(found, int) or not spans, "of partitions, a time gives an offset for each"
    return {} if isinstance(found, int) else {key: Offset(offset) for key, offset in found.items()}
