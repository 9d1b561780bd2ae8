"""Clients that write records and change metadata while nodes are replaced, and what was acknowledged to them."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from types import TracebackType
from typing import Any

from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.rpc.transport import RpcError

TOPIC = "load"
PARTITIONS = 3
KEY = "retention.ms"
FIRST_VALUE = 1_000_000_000  # the settings that are written count up from here
PAUSE_S = 0.02
RESULT_S = 60.0
FAILURES = (QuorumlogError, RpcError, TimeoutError)


class UpgradeLoad:
    """`with` starts a thread that produces and one that changes settings and creates topics, and ends both.

    acked: the values that were acknowledged, each once. setting: the last acknowledged value of KEY.
    made: acknowledged topics. changed_s: when each change of metadata was acknowledged (monotonic).
    """

    def __init__(self, servers: str, topic: str = TOPIC, **options: Any) -> None:
        """options: of its clients."""
        self._servers, self._topic, self._options = servers, topic, options
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=job, daemon=True) for job in (self._produce, self._change)]
        self.acked: list[bytes] = []
        self.setting = FIRST_VALUE
        self.made: list[str] = []
        self.changed_s: list[float] = []
        self.errors: list[str] = []
        self.broken: list[BaseException] = []

    def __enter__(self) -> UpgradeLoad:
        with Cluster(self._servers, **self._options) as client:
            client.admin.create_topic(self._topic, PARTITIONS, 3)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(RESULT_S)
        assert not any(thread.is_alive() for thread in self._threads), "a client hangs"

    def longest_pause_s(self) -> float:
        """Between two acknowledged changes of metadata."""
        times = self.changed_s
        return max((after - before for before, after in pairwise(times)), default=0.0)

    def _produce(self) -> None:
        try:
            with Cluster(self._servers, **self._options) as client, client.producer() as producer:
                number = 0
                while not self._ended.is_set():
                    batch = [b"%d" % (number + index) for index in range(10)]
                    sent = [
                        (value, producer.send(self._topic, value, partition=int(value) % PARTITIONS)) for value in batch
                    ]
                    number += len(batch)
                    for value, future in sent:
                        try:
                            future.result(RESULT_S)
                            self.acked.append(value)
                        except FAILURES as error:
                            self.errors.append(f"produce {value!r}: {error}")
                    time.sleep(PAUSE_S)
        except BaseException as error:
            self.broken.append(error)
            raise

    def _change(self) -> None:
        try:
            with Cluster(self._servers, **self._options, default_api_timeout_ms=int(RESULT_S * 1_000)) as client:
                number = 0
                while not self._ended.is_set():
                    number += 1
                    try:
                        self._change_one(client, number)
                        self.changed_s.append(time.monotonic())
                    except FAILURES as error:
                        self.errors.append(f"change {number}: {error}")
                    time.sleep(PAUSE_S)
        except BaseException as error:
            self.broken.append(error)
            raise

    def _change_one(self, client: Cluster, number: int) -> None:
        if number % 20:
            client.admin.alter_configs(self._topic, {KEY: str(FIRST_VALUE + number)})
            self.setting = FIRST_VALUE + number
        else:
            name = f"made-{self._topic}-{number}"
            client.admin.create_topic(name, 1, 3, exist_ok=True)
            self.made.append(name)
