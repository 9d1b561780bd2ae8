"""Writes to the source topic while the pipeline runs, and notes what was acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Callable

from quorumlog.client.blocking import Cluster, SendFuture
from quorumlog.client.errors import QuorumlogError
from quorumlog.rpc.transport import RpcError

KEYS = 40
PIECE_S = 0.1
DELIVERY_S = 180.0  # for the last records


class Feeder:
    """per_second: records. most: how many there may be, now. It runs from `start` to `stop`, in a thread of its own."""

    def __init__(self, cluster: Cluster, topic: str, per_second: float, most: Callable[[], int]) -> None:
        self._cluster, self._topic, self._most = cluster, topic, most
        self._piece = max(1, round(per_second * PIECE_S))
        self._ends = threading.Event()
        self._sent: list[SendFuture] = []
        self._limit = 0
        self._acknowledged: list[tuple[int, int]] = []
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="feeder")

    def start(self) -> None:
        self._thread.start()

    def feed_at_once(self, count: int) -> list[tuple[int, int]]:
        """Without the thread: the places of so many more records, once they are acknowledged."""
        with self._cluster.producer() as producer:
            first = len(self._sent)
            records = [self._record(first + number) for number in range(count)]
            sent = [producer.send(self._topic, value, key=key) for value, key in records]
            self._sent += sent
            return [(one.partition, one.offset) for one in (future.result(DELIVERY_S) for future in sent)]

    def stop(self) -> list[tuple[int, int]]:
        """(partition, offset) of all that was acknowledged. Raises what the thread failed with."""
        self._ends.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._acknowledged

    def _record(self, number: int) -> tuple[bytes, bytes]:
        """value, key"""
        return b"%d" % number, b"k%d" % (number * 7919 % KEYS)

    def _run(self) -> None:
        try:
            with self._cluster.producer() as producer:
                while not self._ends.wait(PIECE_S):
                    first = len(self._sent)
                    if first >= self._most_now(first):
                        continue
                    for number in range(first, first + self._piece):
                        value, key = self._record(number)
                        self._sent.append(producer.send(self._topic, value, key=key))
                for future in self._sent:
                    self._note(future)
        except BaseException as error:
            self._failure = error

    def _most_now(self, sent: int) -> int:
        """Asked only when the number that was told last is reached."""
        if sent >= self._limit:
            self._limit = self._most()
        return self._limit

    def _note(self, future: SendFuture) -> None:
        try:
            found = future.result(DELIVERY_S)
        except (QuorumlogError, RpcError):
            return  # it may be there or not, which reading tells
        self._acknowledged.append((found.partition, found.offset))
