"""librdkafka's producers, each on a thread of its own, which alone changes its part of the ledger."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException, Producer

from jepsen.live.cluster.nodes import TOPIC
from jepsen.live.evidence.ledger import UNPLACED, Ledger
from jepsen.live.evidence.values import encode, turn_in

TICK_S = 0.01
MOST_SENT_AT_ONCE = 2_000  # records between two looks at the answers
NOT_DELIVERED = "not delivered"
NowMs = Callable[[], int]

# Waits that decide how long a client takes to notice; with librdkafka's own values (60 s, 10 s) the runs would measure
# those. A record is never given up: what has no answer at the end of a run is reported.
SETTINGS = {"socket.timeout.ms": 6_000, "reconnect.backoff.max.ms": 1_000, "message.timeout.ms": 0, "linger.ms": 5}


class ProducerThread(threading.Thread):
    """Sends at its rate to all partitions in turn until `stop`; then waits for the answers that are missing."""

    def __init__(
        self, run: int, number: int, ledger: Ledger, servers: str, now_ms: NowMs, answers_within_s: float
    ) -> None:
        super().__init__(name=f"producer {number}", daemon=True)
        self._run_id, self._number, self._ledger, self._now_ms = run, number, ledger, now_ms
        self._spec = ledger.producers[number]
        self._sent = ledger.sent[number]
        self._answers_within_s = answers_within_s
        self._stop_sending = threading.Event()
        self._next = number  # the partition of the next record, modulo
        self.unanswered = 0
        self.failure = ""  # why this thread ended early
        safe: dict[str, Any] = {"enable.idempotence": True} if self._spec.idempotent else {"acks": 1}
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "client.id": self._spec.name,
                "compression.type": self._spec.compression,
                "error_cb": self._on_error,
                "on_delivery": self._delivered,
                "log_level": 0,  # faults are reported here, not by its log
                **SETTINGS,
                **safe,
            }
        )

    def stop(self) -> None:
        """Ask it to send no more. Then join it."""
        self._stop_sending.set()

    def run(self) -> None:
        try:
            self._send_until_stopped()
            self.unanswered = self._producer.flush(self._answers_within_s)
        except KafkaException as error:
            self.failure = f"the client gave up: {error}"
        except BaseException:  # the run reports it
            self.failure = traceback.format_exc()

    def _send_until_stopped(self) -> None:
        started_ms, bursts = self._now_ms(), 0
        per_burst_ms = 1_000 * self._spec.burst / self._spec.per_second
        while not self._stop_sending.is_set():
            due = int((self._now_ms() - started_ms) / per_burst_ms)
            behind = (due - bursts) * self._spec.burst
            for _ in range(min(behind, MOST_SENT_AT_ONCE)):
                if not self._send():
                    break
            bursts = due  # what did not fit into the client's queue is left out, not made up for
            self._producer.poll(TICK_S)

    def _send(self) -> bool:
        """False if the client's queue is full."""
        partition = self._next % self._ledger.partitions
        sent = self._sent[partition]
        value = encode(self._run_id, self._number, partition, sent.send(self._now_ms()), self._spec.size)
        try:
            self._producer.produce(TOPIC, value, partition=partition)
        except BufferError:
            sent.take_back()
            return False
        self._next += 1
        return True

    def _delivered(self, error: Any, message: Any) -> None:
        """librdkafka's client hides where a callback raised, so that is kept here."""
        try:
            self._take_answer(error, message)
        except Exception:
            self.failure = traceback.format_exc()
            self._stop_sending.set()

    def _take_answer(self, error: Any, message: Any) -> None:
        if error is not None:
            self._ledger.error(f"{self._spec.name}: {NOT_DELIVERED}: {error.name()}")
            return
        turn = turn_in(message.value())
        offset = UNPLACED if message.offset() is None else message.offset()
        self._sent[message.partition()].acknowledge(turn, offset, self._now_ms())
        self._ledger.acknowledged[self._number] += 1

    def _on_error(self, error: Any) -> None:
        self._ledger.error(f"{self._spec.name}: {error.name()}")
