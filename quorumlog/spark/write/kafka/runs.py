"""What a driver's process keeps of its runs: a run becomes its group's driver once, so a second object must find it.

Spark makes a writer anew for each batch, and calls its `commit` and `abort` in one process that lives as long as the
query; `stop` can call `abort` while `commit` still runs.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable

from quorumlog.spark.write.kafka.calls import Calls
from quorumlog.spark.write.kafka.core import Run

MAX_RUNS = 64  # of a process; the one that was used longest ago is forgotten

Key = tuple[str, str, str]
"""Addresses of the cluster, group, run."""


class DriverRun:
    """lock: of everything that steps through the core."""

    def __init__(self, calls: Calls) -> None:
        self.run, self.calls = Run(), calls
        self.lock = threading.Lock()


class Runs:
    """Those of one process id: a fork begins with none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._runs: OrderedDict[Key, DriverRun] = OrderedDict()

    def of(self, key: Key, make: Callable[[], Calls]) -> DriverRun:
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._runs.clear()
            found = self._runs.get(key)
            if found is None:
                found = self._runs[key] = DriverRun(make())
            self._runs.move_to_end(key)
            old = self._runs.popitem(last=False)[1] if len(self._runs) > MAX_RUNS else None
        if old is not None:
            old.calls.close()
        return found

    def forget(self, key: Key) -> None:
        """It will not be asked for again."""
        with self._lock:
            found = self._runs.pop(key, None)
        if found is not None:
            found.calls.close()


RUNS = Runs()
