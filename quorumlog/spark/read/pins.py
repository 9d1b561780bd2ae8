"""Where a stream's beginning is kept, so that whoever asks again hears the same: records of a topic of the cluster.

A pin is written once. Whoever does not find it becomes the only producer of a transactional id made from its name
(KIP-98), and so ends what an earlier start has open; reads the topic to where it ended at that moment; and writes only
if the pin is not there. Of two starts at once the one that was fenced begins anew, and reads what the other has
written. A read waits for the last stable offset: a transaction of another pin that is open may hide the own one.

The topic is an ordinary one, compacted and with one partition, so that it can be in any Kafka.
"""

from __future__ import annotations

import json
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from quorumlog.client.blocking import Cluster, Producer
from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.errors import ConfigError, QuorumlogError, RequestFailed
from quorumlog.client.offsets import LATEST
from quorumlog.client.transactions.errors import ProducerFenced
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset

TOPIC = "__quorumlog_spark_pins"
TRANSACTIONAL_ID = "quorumlog-spark-pin/"  # and the pin's name
TRANSACTION_TIMEOUT_MS = 30_000  # how long a start that died can hide what others have written
READ_TIMEOUT_S = 60
OTHERS_S = 2  # for another start to end its write, before it is taken for dead and fenced
POLL_MS = 200
MAX_NAME = 249  # characters, as of a topic
MAX_TRIES = 20  # to write a pin while other starts want the same one
FIRST_PAUSE_S, MAX_PAUSE_S = 0.1, 5.0  # between them, drawn from a range that doubles
OLD_S = 60  # a pin of more than this age is named to whoever uses it

_POLICY = "cleanup.policy"
_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)  # as partitions and coordinators say it


class PinsUnreadable(QuorumlogError):
    """The topic of the pins is not one that this code may trust, or cannot be read to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """value: what was kept. written_ms: since 1970, by the clock of the process that wrote it."""

    name: str
    value: dict[str, Any]
    written_ms: int


class Pins:
    """Those of one cluster."""

    def __init__(self, cluster: Cluster, wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._cluster = cluster
        self._wall_ms = wall_ms

    def keep(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The value of this pin. If there is none yet, what `make` returns is written first.

        Raises ConfigError, PinsUnreadable, and what the clients raise.
        """
        _check_name(name)
        self._ensure_topic()
        for tries in range(MAX_TRIES):
            found = self._settled(name)
            if found is not None:  # who finds it takes it from nobody
                self._tell(found)
                return found.value
            try:
                return self._written_once(name, make)
            except (ProducerFenced, RequestFailed) as error:
                if isinstance(error, RequestFailed) and error.code not in _FENCED:
                    raise
            # Another start wants the same pin. By turns they would fence each other for ever.
            time.sleep(random.uniform(0, min(MAX_PAUSE_S, FIRST_PAUSE_S * 2**tries)))
        raise PinsUnreadable(f"pin {name!r}: other starts of this query came between {MAX_TRIES} times; start one only")

    def _written_once(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Raises ProducerFenced, or RequestFailed with one of _FENCED, if another start comes between."""
        with self._only_producer(name) as producer:
            found = self._read().get(name)
            if found is not None:
                return found.value
            value = make()
            self._write(producer, name, value)
            return value

    def listed(self) -> list[Pin]:
        """Every pin, by name."""
        return [pin for _, pin in sorted(self._read().items())] if self._exists() else []

    def delete(self, name: str) -> bool:
        """False if there is none. A start that is under way at the same time is fenced, and pins anew."""
        _check_name(name)
        if not self._exists():
            return False
        with self._only_producer(name) as producer:
            if name not in self._read():
                return False
            self._write(producer, name, None)
            return True

    def _exists(self) -> bool:
        """Raises PinsUnreadable for a topic of this name that is none of ours."""
        if TOPIC not in {topic.name for topic in self._cluster.admin.list_topics()}:
            return False
        self._check_topic()
        return True

    @contextmanager
    def _only_producer(self, name: str) -> Iterator[Producer]:
        transactional_id = TRANSACTIONAL_ID + name
        with self._cluster.producer(
            transactional_id=transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        ) as producer:
            producer.init_transactions()
            yield producer

    def _write(self, producer: Producer, name: str, value: dict[str, Any] | None) -> None:
        with producer.transaction():
            text = None if value is None else json.dumps(value)
            producer.send(TOPIC, text, key=name, partition=0, timestamp_ms=self._wall_ms()).result()

    def _read(self) -> dict[str, Pin]:
        """Every pin that was committed before this call. Raises PinsUnreadable."""
        end = self._end("read_uncommitted")
        if self._await_stable(end, READ_TIMEOUT_S) < end:
            raise PinsUnreadable(
                f"topic {TOPIC} has had an open transaction for {READ_TIMEOUT_S} s: see "
                "`quorumlog transaction list`, and abort it"
            )
        return self._pins_below(end)

    def _settled(self, name: str) -> Pin | None:
        """The pin, unless there is none, or an open transaction hides what was written of it.

        It waits OTHERS_S only: a start that died in the middle of its write would else keep all others waiting until
        its transaction times out. What is hidden may be of another pin, or a pin that was deleted behind it.
        """
        end = self._end("read_uncommitted")
        stable = self._await_stable(end, OTHERS_S)
        found = self._pins_below(stable).get(name)
        if found is not None and stable < end:
            hidden = self._records(stable, end, "read_uncommitted")
            found = None if name in map(_name_of, hidden) else found
        return found

    def _pins_below(self, end: Offset) -> dict[str, Pin]:
        pins: dict[str, Pin] = {}
        for record in self._records("earliest", end, "read_committed") if end else ():
            _take(record, pins)
        return pins

    def _records(self, start: Offset | str, end: Offset, isolation_level: str) -> Iterator[ConsumedRecord]:
        """end: exclusive. Raises PinsUnreadable."""
        deadline = time.monotonic() + READ_TIMEOUT_S
        with self._cluster.consumer(isolation_level=isolation_level) as consumer:
            consumer.assign([(TOPIC, 0, start)], stop=end)
            while not consumer.finished:
                if time.monotonic() > deadline:
                    raise PinsUnreadable(f"topic {TOPIC} was not read to its end at {end} in {READ_TIMEOUT_S} s")
                yield from consumer.poll(timeout_ms=POLL_MS)

    def _end(self, isolation_level: str) -> Offset:
        return self._cluster.admin.list_offsets({(TOPIC, 0): LATEST}, isolation_level=isolation_level)[TOPIC, 0].offset

    def _await_stable(self, end: Offset, limit_s: float) -> Offset:
        """The last stable offset, once it has reached `end` or the time is over."""
        deadline = time.monotonic() + limit_s
        while (stable := self._end("read_committed")) < end and time.monotonic() < deadline:
            time.sleep(POLL_MS / 1000)
        return stable

    def _ensure_topic(self) -> None:
        made = self._cluster.admin.create_topic(TOPIC, 1, configs={_POLICY: "compact"}, exist_ok=True)
        if made.error_code:  # it exists
            self._check_topic()

    def _check_topic(self) -> None:
        """Raises PinsUnreadable if retention could take pins away, or their order is that of several partitions."""
        admin = self._cluster.admin
        partitions = len(admin.describe_topic(TOPIC).partitions)
        settings = admin.describe_configs(TOPIC, names=[_POLICY]).configs
        policy = next(one.value for one in settings if one.name == _POLICY)
        if partitions != 1 or policy != "compact":
            raise PinsUnreadable(
                f"topic {TOPIC} must have one partition and cleanup.policy=compact, and has {partitions} and {policy}: "
                "nobody but quorumlog's Spark connector may make it; rename or delete what has this name"
            )

    def _tell(self, pin: Pin) -> None:
        age_s = (self._wall_ms() - pin.written_ms) // 1000
        if age_s > OLD_S:
            warnings.warn(
                f"pin {pin.name!r} was written {age_s} s ago, and this query begins there; for a new beginning use "
                f"another pinId, or `quorumlog spark pin delete {pin.name}`",
                stacklevel=2,
            )


def _take(record: ConsumedRecord, pins: dict[str, Pin]) -> None:
    name = _name_of(record)
    pins.pop(name, None)
    if record.value is None:
        return
    try:
        pins[name] = Pin(name=name, value=json.loads(record.value), written_ms=record.timestamp_ms)
    except ValueError as error:
        raise PinsUnreadable(f"{TOPIC}-0: the record at offset {record.offset} is not a pin: {error}") from error


def _name_of(record: ConsumedRecord) -> str:
    return (record.key or b"").decode(errors="replace")


def _check_name(name: str) -> None:
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise ConfigError(f"pinId must be 1 to {MAX_NAME} printable characters: {name!r}")
