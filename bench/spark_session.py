"""One session of Spark in a process of its own: reads a topic several times, and prints the times as JSON.

    python spark_session.py FORMAT SERVERS TOPIC READS CLASSPATH SETTINGS OPTIONS

Run by a Python that has pyspark but not this package. SETTINGS, OPTIONS: JSON objects of further settings of the
session, and options of the reads. The last line of the
output is a `Session` of spark_rows.py. Times are in seconds; that of a read counts from `spark.read` on, in a session
that is ready.
"""

from __future__ import annotations

import json
import os
import sys
import time

START_S = time.perf_counter()  # before pyspark is imported
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
QUERY = ("count(*)", "sum(length(value))", "sum(crc32(value))")  # touches every byte of every value


def main(
    kind: str, servers: str, topic: str, reads: int, classpath: str, more: dict[str, str], way: dict[str, str]
) -> None:
    from pyspark import __version__
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    settings = {**SETTINGS, **more, **({"spark.driver.extraClassPath": classpath} if classpath else {})}
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    session_s = time.perf_counter() - START_S
    reads_s, used_s, answers = [], [], []
    for _ in range(reads):
        used_before_s, start_s = _used_s(), time.perf_counter()
        options = {"kafka.bootstrap.servers": servers, "subscribe": topic, **way}
        frame = spark.read.format(kind).options(**options).load()
        answers.append(list(frame.selectExpr(*QUERY).collect()[0]))
        reads_s.append(time.perf_counter() - start_s)
        used_s.append(_used_s() - used_before_s)
    found = {"version": __version__, "session_s": session_s, "reads_s": reads_s, "used_s": used_s, "answers": answers}
    print("\n" + json.dumps(found), flush=True)
    spark.stop()


def _used_s() -> float:
    """Processor time of all processes below this one that are alive: Java and Spark's Python processes."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            parents[int(name)] = int(fields[1])
            used[int(name)] = sum(map(int, fields[11:15]))  # user and system, of it and of its children, proc(5)
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(used[pid] for pid in below if pid in used and pid != os.getpid()) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0], given[1], given[2], int(given[3]), given[4], json.loads(given[5]), json.loads(given[6]))
