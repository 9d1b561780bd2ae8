"""The table of the matrix: what both formats are asked to read, what comes of it, and where they may differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.spark.matrix.matrix_world import (
    BARE,
    PAID,
    PAID_END,
    PAID_STABLE,
    PLAIN,
    RECORDS,
    SIZES,
    STAMPED,
    TRANSACTION,
    TRIMMED,
    TRIMMED_TO,
    UNEVEN,
)

Options = Mapping[str, str | None]  # None: not given, not even the default of the table
SHORT = {"kafkaConsumer.pollTimeoutMs": "3000", "fetchOffset.numRetries": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """rows: that Spark's source returns; None: it errs. theirs, ours: parts of the errors. more: options for ours.

    is_quick: of the sample, for a change of the source. runs_on: a stream that is stopped after its first batch.
    """

    name: str
    options: Options
    rows: int | None = None
    theirs: str = ""
    ours: str = ""
    more: Options = field(default_factory=dict)
    is_stream: bool = False
    is_quick: bool = False
    runs_on: bool = False

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("name", "options", "more", "is_stream", "runs_on")}


def at(topic: str, *numbers: int) -> str:
    return json.dumps({topic: dict(enumerate(numbers))})


def cells(start_ms: int) -> list[Cell]:
    """start_ms: as `matrix_world.written` says it."""
    return [
        *_topics(),
        *_offsets(),
        *_times(start_ms),
        *_tasks(),
        *_losses(),
        *_transactions(),
        *_kafka_options(),
        *_bad_values(),
        *_streams(start_ms),
        *_bad_streams(start_ms),
    ]


def _topics() -> Iterator[Cell]:
    every = RECORDS + 4 + sum(SIZES) + (20 - TRIMMED_TO[0]) + 4 * TRANSACTION
    yield Cell(name="one topic", options={"subscribe": PLAIN}, rows=RECORDS)
    yield Cell(
        name="headers",
        options={"subscribe": f" {PLAIN} ,{STAMPED},", "includeHeaders": "true"},
        rows=RECORDS + 4,
        is_quick=True,
    )
    yield Cell(
        name="names and words in odd case",
        is_quick=True,
        rows=RECORDS,
        options={
            "SUBSCRIBE": PLAIN,
            "STARTINGoffsets": " Earliest ",
            "endingoffsets": "LATEST",
            "INCLUDEHEADERS": "TRUE",
            "FAILonDataLoss": "False",
        },
    )
    yield Cell(name="a pattern", options={"subscribePattern": " (pla|st).* "}, rows=RECORDS + 4, is_quick=True)
    yield Cell(
        name="any topic", options={"subscribePattern": ".*", "kafka.isolation.level": "read_uncommitted"}, rows=every
    )
    yield Cell(name="a pattern that no topic matches", options={"subscribePattern": "none.*"}, rows=0)
    yield Cell(name="a pattern of a part of a name", options={"subscribePattern": "lain"}, rows=RECORDS, is_quick=True)
    yield Cell(name="a pattern of Java", options={"subscribePattern": r"\p{Lower}lain"}, rows=RECORDS)
    yield Cell(name="partitions", options={"assign": f'{{"{PLAIN}":[0,2]}}'}, rows=15, is_quick=True)
    yield Cell(name="partitions of two topics", options={"assign": f'{{"{PLAIN}":[1],"{STAMPED}":[0]}}'}, rows=19)
    yield Cell(name="a topic without records", options={"subscribe": BARE}, rows=0)
    yield Cell(name="a topic twice", options={"subscribe": f"{PLAIN},{PLAIN}"}, rows=RECORDS)
    yield Cell(
        name="an option that nobody knows", options={"subscribe": PLAIN, "startingOfsets": "latest"}, rows=RECORDS
    )
    yield Cell(name="no topic", options={}, theirs="must be specified", ours="found none")
    yield Cell(
        name="two ways to name topics",
        options={"subscribe": PLAIN, "assign": f'{{"{PLAIN}":[0]}}'},
        theirs="Only one of",
        ours="found subscribe and assign",
    )
    yield Cell(name="an empty subscribe", options={"subscribe": " , "}, theirs="No topics", ours="names no topic")
    yield Cell(
        name="an empty pattern",
        options={"subscribePattern": " "},
        theirs="Pattern to subscribe is empty",
        ours="subscribePattern",
    )
    yield Cell(
        name="no regular expression", options={"subscribePattern": "("}, theirs="Unclosed group", ours="not a regular"
    )
    yield Cell(
        name="an unknown topic",
        options={"subscribe": "none"},
        theirs="UnknownTopic",
        ours="does not exist",
        is_quick=True,
    )
    yield Cell(
        name="an unknown topic beside another",
        options={"subscribe": f"{PLAIN},none"},
        theirs="UnknownTopic",
        ours="does not exist",
    )
    yield Cell(name="an unknown partition", options={"assign": f'{{"{PLAIN}":[0,7]}}'}, rows=15)
    yield Cell(
        name="a partition of an unknown topic", options={"assign": '{"none":[0]}'}, theirs="UnknownTopic", ours="none"
    )
    yield Cell(name="no object of partitions", options={"assign": "[1]"}, theirs="assign", ours="assign")
    yield Cell(
        name="no list of partitions",
        options={"assign": f'{{"{PLAIN}":1}}'},
        theirs="Expected",
        ours="list of partitions",
    )
    yield Cell(name="an empty object of partitions", options={"assign": "{}"}, rows=0)
    yield Cell(name="an empty list of partitions", options={"assign": f'{{"{PLAIN}":[]}}'}, rows=0)


def _offsets() -> Iterator[Cell]:
    some = {"subscribe": PLAIN, "startingOffsets": at(PLAIN, 3, -2, 0)}
    yield Cell(name="offsets", options={**some, "endingOffsets": at(PLAIN, 9, -1, 0)}, rows=6 + 15, is_quick=True)
    yield Cell(name="offsets and the latest", options=some, rows=12 + 15)
    yield Cell(name="an end that is the start", options={**some, "endingOffsets": at(PLAIN, 3, 4, 0)}, rows=4)
    yield Cell(
        name="offsets of assigned partitions",
        rows=5,
        options={"assign": f'{{"{PLAIN}":[1]}}', "startingOffsets": f'{{"{PLAIN}":{{"1":10}}}}'},
    )
    yield Cell(
        name="an end before the start",
        options={**some, "endingOffsets": at(PLAIN, 2, -1, 0)},
        theirs="greater than",
        ours="after its end",
    )
    for option, lower in (("startingOffsets", 0), ("endingOffsets", 5)):
        yield Cell(
            name=f"{option} that leave a partition out",
            options={"subscribe": PLAIN, option: at(PLAIN, lower, lower)},
            theirs="Partitions specified for Kafka",
            ours="leaves out plain-2",
        )
        yield Cell(
            name=f"{option} of a partition that there is not",
            theirs="Partitions specified for Kafka",
            ours="names plain-3",
            options={"subscribe": PLAIN, option: at(PLAIN, lower, lower, 0, 0)},
        )
        yield Cell(
            name=f"{option} that are no JSON",
            options={"subscribe": PLAIN, option: "soon"},
            theirs="Expected",
            ours="is not JSON",
        )
        yield Cell(
            name=f"{option} that are a list",
            options={"subscribe": PLAIN, option: "[1]"},
            theirs="Expected",
            ours=option,
        )
        yield Cell(
            name=f"{option} without partitions",
            options={"subscribe": PLAIN, option: "{}"},
            theirs="Partitions specified for Kafka",
            ours=option,
        )
        yield Cell(
            name=f"{option} of -3",
            options={"subscribe": PLAIN, option: at(PLAIN, -3, lower, 0), **SHORT},
            theirs="",
            ours="not an offset",
        )
        yield Cell(
            name=f"{option} that are text",
            options={"subscribe": PLAIN, option: f'{{"{PLAIN}":{{"0":"a","1":0,"2":0}}}}'},
            theirs="Expected",
            ours="not an offset",
        )
    yield Cell(
        name="latest as the start",
        options={"subscribe": PLAIN, "startingOffsets": "latest"},
        theirs="can't be latest",
        ours="cannot start at latest",
    )
    yield Cell(
        name="latest in the start",
        options={"subscribe": PLAIN, "startingOffsets": at(PLAIN, 0, -1, 0)},
        theirs="be latest",
        ours="cannot start at latest",
    )
    yield Cell(
        name="earliest as the end",
        options={"subscribe": PLAIN, "endingOffsets": "earliest"},
        theirs="can't be earliest",
        ours="cannot end at earliest",
    )
    yield Cell(
        name="earliest in the end",
        options={"subscribe": PLAIN, "endingOffsets": at(PLAIN, 5, -2, 0)},
        theirs="be earliest",
        ours="cannot end at earliest",
    )


def _times(start_ms: int) -> Iterator[Cell]:
    latest = {"startingOffsetsByTimestampStrategy": "LATEST"}
    two = {"assign": f'{{"{PLAIN}":[0,1]}}'}

    def ms(*numbers: int) -> str:
        return at(PLAIN, *(start_ms + number for number in numbers))

    yield Cell(
        name="times",
        rows=20,
        is_quick=True,
        options={
            "subscribe": PLAIN,
            "startingTimestamp": f" {start_ms + 5} ",
            "endingTimestamp": str(start_ms + 25),
            **latest,
        },
    )
    yield Cell(
        name="a time that a partition does not reach",
        is_quick=True,
        theirs="No offset matched",
        ours="no record at or after",
        options={"subscribe": PLAIN, "startingTimestamp": str(start_ms)},
    )
    yield Cell(
        name="a time for each partition",
        rows=12 + 10,
        options={"subscribe": PLAIN, "startingOffsetsByTimestamp": ms(6, 10, 0), **latest},
    )
    yield Cell(
        name="a time for each partition that one does not reach",
        theirs="No offset matched",
        ours="plain-2",
        options={"subscribe": PLAIN, "startingOffsetsByTimestamp": ms(6, 10, 0)},
    )
    yield Cell(
        name="an end by time for each partition",
        rows=3 + 5,
        options={"subscribe": PLAIN, "endingOffsetsByTimestamp": ms(6, 10, 0)},
    )
    yield Cell(
        name="ends by time in the future",
        rows=RECORDS,
        options={"subscribe": PLAIN, "endingTimestamp": str(start_ms + 7_200_000)},
    )
    yield Cell(
        name="a start in the future, at the latest",
        rows=0,
        options={"subscribe": PLAIN, "startingTimestamp": str(start_ms + 7_200_000), **latest},
    )
    yield Cell(name="a time before all", rows=RECORDS, options={**two, "startingTimestamp": "0"})
    yield Cell(
        name="one time for all goes before the others",
        rows=5,
        is_quick=True,
        options={
            **two,
            "startingTimestamp": str(start_ms + 20),
            "startingOffsetsByTimestamp": ms(0, 0),
            "startingOffsets": "earliest",
            "endingTimestamp": str(start_ms + 25),
            "endingOffsetsByTimestamp": ms(9, 9),
            "endingOffsets": "latest",
        },
    )
    yield Cell(
        name="times go before offsets",
        rows=3 + 2,
        options={
            **two,
            "startingOffsetsByTimestamp": ms(20, 20),
            "startingOffsets": at(PLAIN, 1, 1),
            "endingOffsetsByTimestamp": ms(25, 24),
            "endingOffsets": at(PLAIN, 2, 2),
        },
    )
    yield Cell(
        name="a start by time behind an end by time",
        options={**two, "startingTimestamp": str(start_ms + 20), "endingTimestamp": str(start_ms + 10)},
        theirs="resolved start offset",
        ours="after its end",
    )
    yield Cell(
        name="a start by time behind an end by offset",
        options={**two, "startingTimestamp": str(start_ms + 20), "endingOffsets": at(PLAIN, 2, 2)},
        theirs="resolved start offset",
        ours="after its end",
    )
    yield Cell(
        name="starts by time behind ends by time",
        options={**two, "startingOffsetsByTimestamp": ms(20, 20), "endingOffsetsByTimestamp": ms(10, 10)},
        theirs="greater than the end timestamp",
        ours="after its end",
    )
    yield Cell(
        name="times that leave a partition out",
        options={"subscribe": PLAIN, "startingOffsetsByTimestamp": ms(1, 1)},
        theirs="Partitions specified for Kafka",
        ours="leaves out plain-2",
    )
    yield Cell(
        name="times of a partition that there is not",
        options={"subscribe": PLAIN, "endingOffsetsByTimestamp": ms(1, 1, 1, 1)},
        theirs="Partitions specified for Kafka",
        ours="names plain-3",
    )
    yield Cell(
        name="a time that is no number",
        options={**two, "startingTimestamp": "soon"},
        theirs="Expected a single long",
        ours="is not a time",
    )
    yield Cell(
        name="a time in ISO 8601",
        options={**two, "startingTimestamp": "2026-01-01T00:00:00Z"},
        theirs="Expected a single long",
        ours="",
    )
    yield Cell(
        name="times that are no JSON",
        options={**two, "startingOffsetsByTimestamp": "soon"},
        theirs="Expected",
        ours="is not JSON",
    )
    yield Cell(
        name="a negative time", options={**two, "startingTimestamp": "-5", **SHORT}, theirs="", ours="is not a time"
    )
    yield Cell(
        name="no strategy",
        options={**two, "startingTimestamp": "0", "startingOffsetsByTimestampStrategy": "first"},
        theirs="No value found",
        ours="must be one of error, latest",
    )


def _tasks() -> Iterator[Cell]:
    total = sum(SIZES)
    for many in (2, 4, 7, 20):
        yield Cell(
            name=f"{many} tasks at least",
            options={"subscribe": UNEVEN, "minPartitions": str(many)},
            rows=total,
            is_quick=many == 7,
        )
    yield Cell(
        name="tasks of seven at most",
        options={"subscribe": UNEVEN, "maxRecordsPerPartition": "7"},
        rows=total,
    )
    yield Cell(
        name="tasks of forty at most, and twelve at least",
        rows=total,
        options={"subscribe": UNEVEN, "maxRecordsPerPartition": "40", "minPartitions": "12"},
    )
    yield Cell(
        name="more tasks than records", options={"subscribe": TRIMMED, "minPartitions": "40"}, rows=20 - TRIMMED_TO[0]
    )


def _losses() -> Iterator[Cell]:
    gone = {"subscribe": TRIMMED, "startingOffsets": at(TRIMMED, 0, 0), **SHORT}
    left = 20 - TRIMMED_TO[0]
    lenient = {"failOnDataLoss": "false"}
    yield Cell(name="what deletions left", options={"subscribe": TRIMMED}, rows=left)
    yield Cell(name="deleted records", options=gone, theirs="", ours="older records were deleted", is_quick=True)
    yield Cell(name="deleted records, skipped", options={**gone, **lenient}, rows=left, is_quick=True)
    yield Cell(
        name="nothing but deleted records",
        options={**gone, "endingOffsets": at(TRIMMED, 5, 7)},
        theirs="",
        ours="older records were deleted",
    )
    yield Cell(
        name="nothing but deleted records, skipped",
        options={**gone, "endingOffsets": at(TRIMMED, 5, 7), **lenient},
        rows=0,
    )
    beyond = {"subscribe": TRIMMED, "endingOffsets": at(TRIMMED, 25, 20), **SHORT}
    yield Cell(name="an end beyond the log", options=beyond, theirs="", ours="the log ends at 20")
    yield Cell(name="an end beyond the log, skipped", options={**beyond, **lenient}, rows=left)
    late = {"subscribe": TRIMMED, "startingOffsets": at(TRIMMED, 22, 20), **SHORT}
    yield Cell(name="a start beyond the log", options=late, theirs="", ours="the log ends at 20")
    yield Cell(name="a start beyond the log, skipped", options={**late, **lenient}, theirs="resolved start offset")


def _transactions() -> Iterator[Cell]:
    committed, every = {"kafka.isolation.level": "read_committed"}, {"kafka.isolation.level": "read_uncommitted"}
    yield Cell(name="committed", options={"subscribe": PAID, **committed}, rows=2 * TRANSACTION, is_quick=True)
    yield Cell(name="uncommitted", options={"subscribe": PAID, **every}, rows=4 * TRANSACTION)
    yield Cell(name="the default of isolation", options={"subscribe": PAID}, rows=4 * TRANSACTION)
    yield Cell(
        name="the option of isolation",
        options={"subscribe": PAID},
        more={"isolationLevel": "read_uncommitted"},
        rows=4 * TRANSACTION,
    )
    yield Cell(
        name="committed, to the last stable offset",
        options={"subscribe": PAID, "endingOffsets": at(PAID, PAID_STABLE), **committed},
        rows=2 * TRANSACTION,
    )
    yield Cell(
        name="aborted records alone",
        options={
            "subscribe": PAID,
            "startingOffsets": at(PAID, 6),
            "endingOffsets": at(PAID, 12),
            **committed,
            **SHORT,
        },
        rows=0,
    )
    yield Cell(
        name="a marker alone",
        options={"subscribe": PAID, "startingOffsets": at(PAID, 5), "endingOffsets": at(PAID, 6), **every, **SHORT},
        rows=0,
    )
    yield Cell(
        name="committed, beyond the last stable offset",
        options={"subscribe": PAID, "endingOffsets": at(PAID, PAID_END), **committed, **SHORT},
        theirs="",
        ours="",
    )
    yield Cell(
        name="committed, in tasks", options={"subscribe": PAID, "minPartitions": "6", **committed}, rows=2 * TRANSACTION
    )
    yield Cell(
        name="uncommitted, in tasks",
        options={"subscribe": PAID, "maxRecordsPerPartition": "4", **every},
        rows=4 * TRANSACTION,
    )
    yield Cell(
        name="no isolation level",
        options={"subscribe": PAID, "kafka.isolation.level": "serializable"},
        theirs="isolation",
        ours="isolation_level",
    )


def _kafka_options() -> Iterator[Cell]:
    for name in (
        "auto.offset.reset",
        "key.deserializer",
        "value.deserializer",
        "enable.auto.commit",
        "interceptor.classes",
    ):
        yield Cell(
            name=f"kafka.{name}",
            options={"subscribe": PLAIN, f"kafka.{name}": "none"},
            theirs="not supported",
            ours="cannot be set here",
        )
    yield Cell(name="kafka.group.id", options={"subscribe": PLAIN, "kafka.group.id": "mine"}, rows=RECORDS)
    yield Cell(name="groupIdPrefix", options={"subscribe": PLAIN, "groupIdPrefix": "mine"}, rows=RECORDS)
    yield Cell(
        name="an option of Kafka's client",
        options={"subscribe": PLAIN, "kafka.max.partition.fetch.bytes": "4096"},
        rows=RECORDS,
    )
    yield Cell(
        name="a bad value of Kafka's client",
        options={"subscribe": PLAIN, "kafka.max.partition.fetch.bytes": "many"},
        theirs="max.partition.fetch.bytes",
        ours="max_partition_fetch_bytes",
    )
    yield Cell(
        name="a client's option that nobody knows",
        options={"subscribe": PLAIN, "kafka.fetch.max.byte": "1"},
        rows=RECORDS,
    )
    yield Cell(
        name="no cluster",
        options={"subscribe": PLAIN, "kafka.bootstrap.servers": None},
        theirs="kafka.bootstrap.servers",
        ours="address of the cluster",
    )


def _bad_values() -> Iterator[Cell]:
    for option, words in {
        "minPartitions": ("0", "-1", "few", "1.5"),
        "maxRecordsPerPartition": ("0", "-1", "few"),
        "failOnDataLoss": ("maybe", ""),
        "includeHeaders": ("maybe", "1"),
        "kafkaConsumer.pollTimeoutMs": ("soon",),
        "fetchOffset.numRetries": ("often",),
        "fetchOffset.retryIntervalMs": ("soon",),
    }.items():
        for word in words:
            yield Cell(name=f"{option}={word}", options={"subscribe": PLAIN, option: word}, theirs="", ours=option)
    for option in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"):
        yield Cell(name=f"{option} of a batch", options={"subscribe": PLAIN, option: "5"}, rows=RECORDS)


def _streams(start_ms: int) -> Iterator[Cell]:
    def cell(name: str, rows: int | None, options: Options, **more: Any) -> Cell:
        return Cell(
            name=f"stream: {name}",
            options={"startingOffsets": "earliest", **options},
            rows=rows,
            is_stream=True,
            **more,
        )

    total, left = sum(SIZES), 20 - TRIMMED_TO[0]
    yield cell(
        "earliest, with headers",
        RECORDS + 4,
        {"subscribe": f"{PLAIN},{STAMPED}", "includeHeaders": "true"},
    )
    yield cell("a limit", total, {"subscribe": UNEVEN, "maxOffsetsPerTrigger": "25"}, is_quick=True)
    yield cell(
        "a limit below the partitions",
        10 + 10 + 1,
        {"subscribe": UNEVEN, "maxOffsetsPerTrigger": "2", "startingOffsets": at(UNEVEN, 90, 0, 0)},
    )
    yield cell("a limit and tasks", total, {"subscribe": UNEVEN, "maxOffsetsPerTrigger": "60", "minPartitions": "7"})
    yield cell("offsets", 12 + 15, {"subscribe": PLAIN, "startingOffsets": at(PLAIN, 3, -2, 0)})
    yield cell("a pattern", RECORDS, {"subscribePattern": "pla.*"})
    yield cell("partitions", 15, {"assign": f'{{"{PLAIN}":[1]}}'})
    yield cell("a topic without records", 0, {"subscribe": BARE})
    yield cell(
        "a time",
        20,
        {"assign": f'{{"{PLAIN}":[0,1]}}', "startingTimestamp": str(start_ms + 10)},
        more={"pinId": "matrix-time"},
    )
    yield cell(
        "a time that a partition does not reach",
        None,
        {"subscribe": PLAIN, "startingTimestamp": str(start_ms)},
        more={"pinId": "matrix-none"},
        theirs="No offset matched",
        ours="no record at or after",
    )
    yield cell(
        "a time that a partition does not reach, at the latest",
        20,
        {"subscribe": PLAIN, "startingTimestamp": str(start_ms + 10), "startingOffsetsByTimestampStrategy": "latest"},
        more={"pinId": "matrix-latest"},
    )
    yield cell("a time without a pin", 20, {"assign": f'{{"{PLAIN}":[0,1]}}', "startingTimestamp": str(start_ms + 10)})
    yield cell("latest", 0, {"subscribe": PLAIN, "startingOffsets": "latest"}, more={"pinId": "matrix-end"})
    yield cell("the default of its start", 0, {"subscribe": PLAIN, "startingOffsets": None})
    yield cell("committed", 2 * TRANSACTION, {"subscribe": PAID, "kafka.isolation.level": "read_committed"})
    yield cell(
        "committed, with a limit",
        2 * TRANSACTION,
        {"subscribe": PAID, "kafka.isolation.level": "read_committed", "maxOffsetsPerTrigger": "4"},
    )
    yield cell("uncommitted", 4 * TRANSACTION, {"subscribe": PAID, "kafka.isolation.level": "read_uncommitted"})
    yield cell("what deletions left", left, {"subscribe": TRIMMED})
    yield cell(
        "deleted records",
        None,
        {"subscribe": TRIMMED, "startingOffsets": at(TRIMMED, 0, 0), **SHORT},
        theirs="",
        ours="older records were deleted",
    )
    yield cell(
        "deleted records, skipped",
        left,
        {"subscribe": TRIMMED, "startingOffsets": at(TRIMMED, 0, 0), "failOnDataLoss": "false", **SHORT},
    )
    yield cell(
        "a start beyond the log",
        None,
        {"subscribe": TRIMMED, "startingOffsets": at(TRIMMED, 25, 20), **SHORT},
        theirs="",
        ours="",
    )
    yield cell(
        "a minimum that is not there yet",
        RECORDS,
        {"subscribe": PLAIN, "minOffsetsPerTrigger": "1000", "maxTriggerDelay": "10m"},
        runs_on=True,
    )
    yield cell(
        "a minimum in AvailableNow",
        RECORDS,
        {"subscribe": PLAIN, "minOffsetsPerTrigger": "1000", "maxTriggerDelay": "10m"},
    )
    yield cell(
        "a minimum and a limit",
        RECORDS,
        {"subscribe": PLAIN, "minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "16"},
    )


def _bad_streams(start_ms: int) -> Iterator[Cell]:
    def cell(name: str, options: Options, theirs: str, ours: str, rows: int | None = None) -> Cell:
        given = {"subscribe": PLAIN, "startingOffsets": "earliest", **options}
        return Cell(name=f"stream: {name}", options=given, theirs=theirs, ours=ours, rows=rows, is_stream=True)

    yield cell("endingOffsets", {"endingOffsets": "latest"}, "not valid in streaming", "is for batch reads")
    yield cell(
        "endingOffsetsByTimestamp",
        {"endingOffsetsByTimestamp": at(PLAIN, 1, 1, 1)},
        "not valid in streaming",
        "is for batch reads",
    )
    yield cell("endingTimestamp", {"endingTimestamp": str(start_ms + 10)}, "", "", RECORDS)
    yield cell(
        "a minimum above the limit",
        {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
        "higher than",
        "must not be above",
    )
    yield cell("an unknown topic", {"subscribe": "none"}, "UnknownTopic", "does not exist")
    yield cell(
        "offsets that leave a partition out",
        {"startingOffsets": at(PLAIN, 0, 0)},
        "must specify all",
        "leaves out plain-2",
    )
    yield cell(
        "offsets of a partition that there is not",
        {"startingOffsets": at(PLAIN, 0, 0, 0, 0)},
        "must specify all",
        "names plain-3",
    )
    for option, never in (("maxOffsetsPerTrigger", 0), ("minOffsetsPerTrigger", RECORDS)):
        yield cell(f"{option}=few", {option: "few"}, "", option)
        for word in ("-1", "0"):
            yield cell(f"{option}={word}", {option: word}, "", option, never)
    yield cell("maxTriggerDelay=soon", {"minOffsetsPerTrigger": "1", "maxTriggerDelay": "soon"}, "", "maxTriggerDelay")
    yield cell(
        "kafka.auto.offset.reset", {"kafka.auto.offset.reset": "earliest"}, "not supported", "cannot be set here"
    )
