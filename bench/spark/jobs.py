"""Runs sessions of Spark on one cluster, each in a process of its own, and looks at the way by which they read."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.nodes.subject import Subject
from bench.spark.rows import Session, check_way, parse_session
from bench.spark.tools import SparkTools

SCRIPT = Path(__file__).with_name("spark_session.py")
SESSION_TIMEOUT_S = 900.0
OURS, THEIRS = "quorumlog", "kafka"  # the formats
LANE: Mapping[str, str] = {"transport": "lane"}  # options of a read
AT_LEAST_ONCE: Mapping[str, str] = {"delivery": "at-least-once"}  # of a write of ours
SENT_BYTES = "quorumlog_fetch_chunk_bytes_total"  # of records by gRPC; the brokers' metric
STEADY_ROWS, STEADY_PAUSE_S = 10, 0.01  # 1,000 records a second


class SessionFailed(Exception):
    """A session ended with an error, or not in time. The message names its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a session does `runs` times. work: of spark_session.WORKS. kind: the format. is_quick: after `quick_start`.
    options: of its reads or writes. rows: that it writes in each run; 0: it reads."""

    work: str
    kind: str
    topic: str
    runs: int
    is_quick: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0

    @property
    def is_by_grpc(self) -> bool:
        return self.kind == OURS and self.options != LANE and not self.rows


@dataclass(frozen=True, slots=True)
class Sessions:
    """folder: for logs and for what sessions write. record_bytes: of each record's value."""

    subject: Subject
    tools: SparkTools
    folder: Path
    record_bytes: int

    def run(self, name: str, job: Job, installed: Path | None) -> Session:
        """installed: our packages. Prints a line. Raises SessionFailed, WrongWay."""
        written = self.folder / f"{name}-written"
        classpath = f"{self.tools.jars}/*" if job.kind == THEIRS else ""
        servers = self.subject.nodes.layout.bootstrap_servers
        given = {**asdict(job), "servers": servers, "folder": str(written), "classpath": classpath}
        sent_before = self.subject.nodes.metric(SENT_BYTES)
        environment = self.tools.environment(installed, is_quick=job.is_quick)
        found = self._output(name, [str(self.tools.python), str(SCRIPT), json.dumps(given)], environment)
        least = sum(answer[0] for answer in found.answers) * self.record_bytes if job.is_by_grpc else 0
        check_way(name, self.subject.nodes.metric(SENT_BYTES) - sent_before, least)
        used = f", processor time {found.used_s[0]:.1f} and {found.warm_used_s:.1f} s" if found.used_s[0] else ""
        print(f"{name}: first {job.work} {found.reads_s[0]:.2f} s, later {found.warm_s:.2f} s{used}", flush=True)
        return found

    def _output(self, name: str, command: list[str], environment: Mapping[str, str]) -> Session:
        """In a folder without packages: Python looks into where it is started before it looks at its path."""
        log = self.folder / f"{name}.log"
        with log.open("w") as errors:
            try:
                done = subprocess.run(
                    command, env=environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=errors, text=True,
                    timeout=SESSION_TIMEOUT_S, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise SessionFailed(f"not done after {SESSION_TIMEOUT_S:g} s; its log is {log}") from None
        if done.returncode != 0:
            raise SessionFailed(f"it ended with {done.returncode}; its log is {log}")
        return parse_session(done.stdout)


@contextmanager
def steadily_written(subject: Subject, topic: str) -> Iterator[None]:
    """1,000 records of 100 bytes a second go into the topic, from a thread of this process."""
    ended = threading.Event()

    async def write() -> None:
        async with subject.producer() as producer:
            while not ended.is_set():
                for number in range(STEADY_ROWS):
                    await producer.send(topic, b"%0100d" % number)
                await asyncio.sleep(STEADY_PAUSE_S)

    writer = threading.Thread(target=lambda: asyncio.run(write()), daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
