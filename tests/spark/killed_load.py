"""A process that loads a topic and is killed (`kill -9`) at one call of its store: `python -m tests.spark.killed_load`.

Arguments: servers, topic, the store's place, the call's name, its number from 1 on, `before` or `after`, `process` or
the master of a Spark, where a call of a worker kills the driver, whose workers end with it, and perhaps `delta`.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from quorumlog.spark.load.folder import BY_DAY
from quorumlog.spark.load.job import Request, in_spark, in_this_process, run_load
from quorumlog.spark.load.store import Store, open_store
from quorumlog_cli.spark_session import session

CALLS = ("create", "put_file", "sweep")
GONE_S = 20


class StrikingStore:
    """A store whose n-th call of one kind kills the load. The calls are counted across processes, in a folder."""

    def __init__(self, store: Store, call: str, number: int, moment: str, counted: str) -> None:
        self._store, self._call, self._number, self._moment = store, call, number, moment
        self._counted, self._driver = counted, os.getpid()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._store, name)
        if name != self._call:
            return found

        def struck(*given: Any, **named: Any) -> Any:
            is_it = self._count() == self._number
            if is_it and self._moment == "before":
                self._strike()
            result = found(*given, **named)
            if is_it:
                self._strike()
            return result

        return struck

    def _count(self) -> int:
        for number in range(1, 1000):
            try:
                (Path(self._counted) / str(number)).touch(exist_ok=False)
            except FileExistsError:
                continue
            return number
        raise AssertionError("too many calls")

    def _strike(self) -> None:
        os.kill(self._driver, signal.SIGKILL)
        time.sleep(GONE_S)  # a worker is ended by Spark
        os._exit(1)


def main(
    servers: str, topic: str, place: str, call: str, number: str, moment: str, where: str, table: str = ""
) -> None:
    client = {"bootstrap_servers": servers}
    request = Request(topics=(topic,), client=client, rows_per_file=30, partition_by=BY_DAY, table=table)
    folder = tempfile.mkdtemp()
    store = StrikingStore(open_store(place), call, int(number), moment, folder)
    ground: AbstractContextManager[Any] = nullcontext()
    if where != "process":
        os.environ["SPARK_WORKER_DIR"] = folder
        ground = session(Path(folder) / "spark.log", "killed", where)
    with ground as spark:
        run_load(request, store, in_this_process if spark is None else in_spark(spark))


if __name__ == "__main__":
    main(*sys.argv[1:])
