"""A topic copied from one node to another: `quorumlog spark mirror` beside MirrorMaker 2, between the same two nodes.

Both sides are clusters of ours of one node each, which serve Kafka's protocol. MirrorMaker 2 runs as it comes, and in
its exactly-once mode; ours exactly once, as it comes. A rate counts from the first record in the target's log until a
reader of committed records has found all of them. So what a program needs to start is a row of its own.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.measuring.loads import make_load
from bench.measuring.report import Row
from bench.nodes.subject import READ_MS, Subject
from bench.peers import mirror_maker
from bench.peers.kafka_tools import Kafka, Unavailable
from bench.spark.jobs import SessionFailed
from bench.spark.part import Found, Setting, rotated
from bench.spark.rows import WrongAnswer
from bench.spark.tools import SparkTools
from bench.three.throughput import produce_columns
from quorumlog.client.errors import QuorumlogError
from quorumlog.rpc.transport import RpcError
from quorumlog.testing.cluster import LocalCluster

RECORDS, QUICK_RECORDS = 1_000_000, 50_000
RECORD_BYTES = 1_024
PARTITIONS = 6
ROUNDS, QUICK_ROUNDS = 3, 1
TOPIC = "spark-mirror"
LOOK_S = 0.05
TIMEOUT_S = 900.0  # of one copy
STOP_S = 30.0
GOAL = 1.0  # times the rate of MirrorMaker 2, at least
KINDS: Mapping[str, str] = {"maker": "MirrorMaker 2", "maker_once": "MirrorMaker 2, exactly once", "ours": "ours"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """start_s: from the process's start to the first record in the target's log. copied_s: from then on."""

    start_s: float
    copied_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorRound:
    """maker, maker_once: MirrorMaker 2 as it comes, and in its exactly-once mode."""

    ours: Copy
    maker: Copy
    maker_once: Copy


@dataclass(frozen=True, slots=True)
class Between:
    """The two clusters, and what copies from one to the other."""

    source: Subject
    target: Subject
    tools: SparkTools
    installed: Path
    maker: Kafka
    folder: Path

    def command(self, kind: str, alias: str) -> tuple[list[str], dict[str, str]]:
        """alias: of the source, a new one for each copy. The command and its environment."""
        one, other = (side.nodes.layout.bootstrap_servers for side in (self.source, self.target))
        if kind == "ours":
            words = ["--from", f"{alias}={one}", "--to", f"target={other}", "--topics", TOPIC, "--name", alias]
            words += ["--once", "--checkpoint", str(self.folder / f"{alias}-checkpoint")]
            environment = self.tools.environment(self.installed) | {"JAVA_HOME": _java_home(self.maker.java)}
            return [str(self.tools.python), "-m", "quorumlog_cli.main", "spark", "mirror", *words], environment
        values = mirror_maker.properties(
            (alias, one), (f"target-{alias}", other), TOPIC, exactly_once=kind == "maker_once"
        )
        file = mirror_maker.write_properties(self.folder / f"{alias}.properties", values)
        return mirror_maker.command(self.maker, file), dict(os.environ)


def measure_mirror(setting: Setting) -> Iterator[Found]:
    """Raises SessionFailed, WrongAnswer."""
    tools = setting.newest
    if tools is None:
        return
    try:
        maker = mirror_maker.get_mirror_maker()
    except Unavailable as reason:
        print(f"mirrors are not measured: {reason}")
        return
    rounds = setting.round_count(ROUNDS, QUICK_ROUNDS)
    here = setting.folder / "mirror"
    here.mkdir()
    with (
        LocalCluster(here / "source", nodes=1, keep_data=True) as source,
        LocalCluster(here / "target", nodes=1, keep_data=True) as target,
    ):
        installed = tools.install(here / "filled", fill_cache=True)
        sides = Between(Subject(source.nodes), Subject(target.nodes), tools, installed, maker, here)
        records = asyncio.run(_load(sides.source, setting.record_count(RECORDS, QUICK_RECORDS)))
        found = []
        for number in range(rounds):
            print(f"mirror, round {number + 1} of {rounds}", flush=True)
            kinds = rotated(list(KINDS), number)
            found.append(MirrorRound(**{kind: _copy(sides, kind, number, records) for kind in kinds}))
    yield mirror_found(found, records, judged=not setting.quick)


async def _load(subject: Subject, wanted: int) -> int:
    """How many records the source's topic holds."""
    load = make_load(RECORD_BYTES, wanted * RECORD_BYTES)
    await subject.create(TOPIC, PARTITIONS, 1)
    await produce_columns(subject, TOPIC, load, PARTITIONS)
    return load.records + PARTITIONS


def _copy(sides: Between, kind: str, number: int, records: int) -> Copy:
    alias = f"{kind.replace('_', '-')}-{number}"
    topic, (command, environment) = f"{alias}.{TOPIC}", sides.command(kind, alias)
    log = sides.folder / f"{alias}.log"
    began_s = time.perf_counter()
    with running(command, environment, log) as process:
        first_s, last_s = asyncio.run(_arrival(sides.target, topic, records, process, log))
        if kind == "ours":
            _ends_well(process, log)
    found = Copy(start_s=first_s - began_s, copied_s=last_s - first_s)
    print(f"{alias}: {records / found.copied_s:,.0f} records/s, {found.start_s:.1f} s before the first", flush=True)
    asyncio.run(sides.target.delete(topic))
    return found


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """In a process group of its own, which is asked to end, and killed if it does not."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=log.parent, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


def _ends_well(process: subprocess.Popen[bytes], log: Path) -> None:
    try:
        code = process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        raise SessionFailed(f"all was copied, and it did not end within {STOP_S:g} s; its log is {log}") from None
    if code:
        raise SessionFailed(f"it ended with {code}; its log is {log}")


async def _arrival(
    target: Subject, topic: str, records: int, process: subprocess.Popen[bytes], log: Path
) -> tuple[float, float]:
    """When the target's log had its first record, and when a reader of committed records had found all of them."""
    deadline_s = time.perf_counter() + TIMEOUT_S

    def check(found: int) -> None:
        if process.poll() not in (None, 0):
            raise SessionFailed(f"it ended with {process.returncode} after {found} records; its log is {log}")
        if time.perf_counter() > deadline_s:
            raise SessionFailed(f"{found} of {records} records after {TIMEOUT_S:g} s; its log is {log}")

    while not await _has_any(target, topic):
        check(0)
        await asyncio.sleep(LOOK_S)
    first_s = time.perf_counter()
    found = 0
    async with target.consumer(isolation_level="read_committed") as consumer:
        await consumer.assign_topic(topic, "earliest")
        while found < records:
            came = await consumer.next_arrow(READ_MS)
            found += 0 if came is None else int(came[1].num_rows)
            check(found)
    if found != records:
        raise WrongAnswer(f"{topic}: {found} records, and {records} were to be copied")
    return first_s, time.perf_counter()


async def _has_any(target: Subject, topic: str) -> bool:
    try:
        return await target.ends(topic) > 0
    except (QuorumlogError, RpcError):
        return False  # it is not there yet


def mirror_found(rounds: Sequence[MirrorRound], records: int, *, judged: bool) -> Found:
    """judged: whether the goals are stated."""

    def rates(kind: str) -> list[float]:
        return [records / getattr(turn, kind).copied_s for turn in rounds]

    ours, made = rates("ours"), []
    for kind in ("maker", "maker_once"):
        theirs = rates(kind)
        shares = [mine / other for mine, other in zip(ours, theirs, strict=True)]
        goal = GOAL if judged else None
        made += [
            Row(name=KINDS[kind], unit="records/s", rounds=theirs),
            Row(name="mirror, exactly once", unit="records/s", rounds=ours, shares=shares, of=KINDS[kind], goal=goal),
        ]
    made += [
        Row(name=f"before the first record: {title}", unit="s", rounds=[getattr(turn, kind).start_s for turn in rounds])
        for kind, title in KINDS.items()
    ]
    heading = f"mirror: {records} records of {RECORD_BYTES} bytes, {PARTITIONS} partitions, one node on each side"
    return Found(name="mirror", heading=heading, rows=made, samples=[asdict(turn) for turn in rounds])


def _java_home(java: str) -> str:
    return str(Path(java).resolve().parents[1])
