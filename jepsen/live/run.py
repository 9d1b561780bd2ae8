"""One live run: start, strike, heal, read everything, stop, judge."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from jepsen.checkers.findings import Finding
from jepsen.live import interrupt
from jepsen.live.clients import ProducerThread
from jepsen.live.cluster.nodes import LiveCluster
from jepsen.live.disks.ways import Ways
from jepsen.live.evidence.audited import audit_nodes
from jepsen.live.evidence.audited import line_of as line_of_audit
from jepsen.live.evidence.checks import check_logs, count_missing_leader_only, few, judge_doubled, vanished_reads
from jepsen.live.evidence.ledger import Ledger, ProducerSpec
from jepsen.live.evidence.pauses import AckTimes, Pause, ack_times, calm_windows, long_pauses, pause_of, pauses_in_calm
from jepsen.live.evidence.readers import ReaderThread, Records, read_everything
from jepsen.live.evidence.replicas import check_replicas, number_at
from jepsen.live.evidence.values import RecordId, decode
from jepsen.live.guard import Guard
from jepsen.live.minimums import Minimum, minimums
from jepsen.live.plan import Kind, Step, Strike, strikes
from jepsen.live.scenarios.after import failed_writes, note_latencies
from jepsen.live.scenarios.catalogue import SCENARIOS, Scenario, Stage, staged
from jepsen.live.scenarios.striker import ScenarioStriker
from jepsen.live.striker import Striker, StrikeRecord
from quorumlog.testing.waiting import TimedOut, wait_until

PARTITIONS = 6
WARM_UP_S = 2.0  # without faults, after the first acknowledgements
FIRST_ACK_TIMEOUT_S = 30.0
ANSWERS_WITHIN_S = 60.0  # after the last fault
PROGRESS_S = 5.0
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """minutes: how long strikes go on; the first round of all kinds always ends. rate: records a second, in all.

    scenario: a name of SCENARIOS; then its strikes are carried out, each once. steps: those of it alone; empty: all.
    """

    seed: int
    minutes: float
    nodes: int = 3
    kinds: tuple[Kind, ...] = tuple(Kind)
    rate: float = 400.0
    keep: bool = False
    edge_only: bool = False
    scenario: str = ""
    steps: tuple[str, ...] = ()

    @property
    def staging(self) -> Scenario | None:
        return SCENARIOS[self.scenario] if self.scenario else None


@dataclass(slots=True, kw_only=True)
class Outcome:
    """All that the report tells. times in ms since the start of the run.

    renumbered: records that librdkafka sent a second time under another number; a broker cannot know that.
    """

    options: Options
    ways: Ways
    ledger: Ledger
    findings: list[Finding]
    strikes: list[StrikeRecord]
    pauses: list[Pause]
    times: AckTimes
    minimums: list[Minimum]
    interrupted: bool
    acknowledged: int
    records_read: int
    leader_only_missing: int
    reader_errors: dict[str, int]
    strikes_from_ms: int
    strikes_until_ms: int
    renumbered: list[str]
    skipped: Mapping[str, str] = field(default_factory=dict)  # kinds of a scenario, with the reason

    @property
    def is_enough(self) -> bool:
        return all(minimum.is_met for minimum in self.minimums)

    @property
    def verdict(self) -> str:
        if self.findings:
            return "INVALID"
        return "VALID" if self.is_enough else "TOO LITTLE EXERCISED"

    @property
    def exit_code(self) -> int:
        return {"VALID": 0, "INVALID": 1}.get(self.verdict, 2)


class LiveRun:
    """Carries one run out. Everything that it starts has ended when `carry_out` returns or raises."""

    def __init__(self, options: Options, say: Say) -> None:
        self._options, self._say = options, say
        self._started = time.monotonic()
        self._scenario, self._stage = options.staging, Stage()
        self._partitions = self._scenario.partitions if self._scenario else PARTITIONS
        longer = self._scenario.size if self._scenario else 0
        self._ledger = Ledger(producers_of(options.rate, longer), self._partitions)
        self._run_id = options.seed & 0xFFFFFFFF
        self._decode = partial(_decode, self._run_id, self._ledger.sizes)
        self._findings: list[Finding] = []
        self._interrupted = False
        self._doing = "starting"

    def now_ms(self) -> int:
        return int((time.monotonic() - self._started) * 1_000)

    def carry_out(self) -> Outcome:
        """Raises LayoutError, NodeEnded, TimedOut, MountFailed, AttachFailed: the run could not be carried out."""
        folder = Path(tempfile.mkdtemp(prefix="quorumlog-live-"))
        guard = Guard(folder)
        try:
            ways = Ways.of_this_machine(folder, self._options.edge_only)
            scenario, nodes = self._scenario, self._options.nodes
            with staged(scenario, self._options.steps, folder, ways) if scenario else nullcontext(Stage()) as stage:
                self._stage = stage
                nodes = max(nodes, scenario.nodes) if scenario else nodes
                with closing(LiveCluster(folder / "cluster", nodes, self._partitions, ways, stage.shape)) as cluster:
                    try:
                        return self._with(cluster)
                    finally:
                        cluster.keeps_files = self._keeps_files
        finally:
            guard.close()
            if self._keeps_files:
                self._say(f"data and logs: {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)

    @property
    def _keeps_files(self) -> bool:
        """They are the evidence of what was broken."""
        return self._options.keep or bool(self._findings)

    def _with(self, cluster: LiveCluster) -> Outcome:
        cluster.start()
        self._started = time.monotonic()  # of the run's time
        striker = (ScenarioStriker if self._scenario else Striker)(cluster, self.now_ms)
        producers = [
            ProducerThread(self._run_id, number, self._ledger, cluster.bootstrap_servers, self.now_ms, ANSWERS_WITHIN_S)
            for number in range(len(self._ledger.producers))
        ]
        reader = ReaderThread(cluster.bootstrap_servers, self._partitions, self._decode)
        threads: list[ProducerThread | ReaderThread] = [*producers, reader]
        for thread in threads:
            thread.start()
        try:
            with self._progress(cluster):
                from_ms, until_ms = self._strike(striker)
                self._finish(producers)
                final = self._read(cluster, reader)
        finally:
            for thread in threads:
                thread.stop()
        self._doing = "checking"
        self._failures_of(threads)
        return self._judge(cluster, striker, final, reader.records, (from_ms, until_ms))

    def _strike(self, striker: Striker) -> tuple[int, int]:
        """When strikes began and ended, in ms. An interrupt ends them early."""
        from_ms = self.now_ms()
        try:
            wait_until(lambda: self._ledger.acknowledged_count, FIRST_ACK_TIMEOUT_S, "the first acknowledgement")
            time.sleep(WARM_UP_S)
            from_ms = self.now_ms()
            for strike in self._planned():
                if self._is_over(strike, from_ms):
                    break
                self._doing = f"strike {strike.number}: {strike.kind.value}"
                striker.carry_out(strike)
                interrupt.look()
                self._say(line_of(striker.records[-1]))
                if striker.records[-1].whole_ms < 0:
                    break
            time.sleep(WARM_UP_S)
        except KeyboardInterrupt:
            self._interrupted = True
            self._say("interrupted: the faults end, and what was done is judged")
            striker.wait_whole()
        self._findings += striker.findings
        return from_ms, self.now_ms()

    def _planned(self) -> Iterable[Strike]:
        if self._scenario is not None:
            return self._stage.strikes
        return strikes(self._options.seed, self._options.kinds, self._options.nodes, self._partitions)

    def _is_over(self, strike: Strike, from_ms: int) -> bool:
        """A scenario has an end of its own."""
        first_round = len(self._stage.strikes if self._scenario else self._options.kinds)
        return strike.number > first_round and self.now_ms() - from_ms >= self._options.minutes * 60_000

    def _finish(self, producers: Sequence[ProducerThread]) -> None:
        self._doing = "waiting for the last answers"
        for producer in producers:
            producer.stop()
        for producer in producers:
            producer.join()
            if producer.unanswered:
                text = f"{producer.unanswered} records of {producer.name} have no answer {ANSWERS_WITHIN_S:g} s later"
                self._findings.append(Finding("unanswered", text))

    def _read(self, cluster: LiveCluster, reader: ReaderThread) -> Records:
        """Everything, once more, from the start. Then the running consumer ends."""
        self._doing = "reading everything"
        try:
            final = read_everything(cluster.bootstrap_servers, self._partitions, self._decode)
        except TimedOut as error:
            self._findings.append(Finding("unreadable", str(error)))
            final = Records(self._partitions)
        reader.stop()
        reader.join()
        return final

    def _failures_of(self, threads: Sequence[ProducerThread | ReaderThread]) -> None:
        for thread in threads:
            if thread.failure:
                self._findings.append(Finding("client-crashed", f"{thread.name}: {thread.failure}"))

    def _judge(
        self, cluster: LiveCluster, striker: Striker, final: Records, seen: Records, strike_time: tuple[int, int]
    ) -> Outcome:
        self._say("stopping the nodes, checking the records")
        killed = cluster.nodes.stop()
        self._findings += [Finding("not-stopped", f"node {node_id} did not stop in time") for node_id in killed]
        logs, records = final.by_partition, striker.records
        windows = [(one.began_ms, one.whole_ms if one.whole_ms >= 0 else self.now_ms()) for one in records]
        self._findings += [*seen.findings, *final.findings]
        findings, doubled = check_logs(self._ledger, logs, windows)
        directories = [(node_id, cluster.directories(node_id)) for node_id in cluster.ids]
        duplicates, renumbered = judge_doubled(doubled, partial(number_at, directories))
        self._findings += [*findings, *duplicates]
        self._findings += few(vanished_reads(seen.by_partition, logs))
        self._findings += check_replicas(directories, logs, self._decode)
        found, audited = audit_nodes(path for _, paths in directories for path in paths)
        self._findings += found
        if audited is not None:
            self._say(line_of_audit(audited))
        times = ack_times(self._ledger, strike_time[1])
        pauses = [pause_of(record, times) for record in records]
        self._findings += long_pauses(records, pauses)
        self._findings += pauses_in_calm(times, calm_windows(records, *strike_time))
        if self._scenario is not None:
            note_latencies(records, self._ledger)
            self._findings += failed_writes(self._ledger) if self._scenario.fails_no_write else []
        kinds: Counter[Kind | Step] = Counter(one.kind for one in self._stage.strikes)
        if self._scenario is None:
            kinds.update(self._options.kinds)
        reached = minimums(
            kinds, records, pauses,
            seconds=(strike_time[1] - strike_time[0]) / 1_000,
            acknowledged=self._ledger.acknowledged_count,
            read=seen.count,
        )  # fmt: skip
        return Outcome(
            options=self._options, ways=cluster.ways, ledger=self._ledger, findings=self._findings, strikes=records,
            pauses=pauses, times=times, minimums=reached, interrupted=self._interrupted,
            acknowledged=self._ledger.acknowledged_count, records_read=sum(map(len, logs)),
            leader_only_missing=count_missing_leader_only(self._ledger, logs), renumbered=renumbered,
            reader_errors=seen.errors, skipped=self._stage.skipped,
            strikes_from_ms=strike_time[0], strikes_until_ms=strike_time[1],
        )  # fmt: skip

    @contextmanager
    def _progress(self, cluster: LiveCluster) -> Iterator[None]:
        """A line every few seconds."""
        ended = threading.Event()

        def tell() -> None:
            before = 0
            while not ended.wait(PROGRESS_S):
                count = self._ledger.acknowledged_count
                nodes = " ".join(f"n{node_id} {cluster.nodes.state(node_id).value}" for node_id in cluster.ids)
                rate = (count - before) / PROGRESS_S
                self._say(
                    f"{self.now_ms() / 1000:6.1f} s  {count:>9,} acknowledged ({rate:,.0f}/s)  {nodes}  {self._doing}"
                )
                before = count

        thread = threading.Thread(target=tell, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def producers_of(rate: float, longer: int = 0) -> tuple[ProducerSpec, ...]:
    """Four producers of several rates and sizes. rate: records a second of all of them. longer: bytes more in each."""
    return (
        ProducerSpec(name="steady", idempotent=True, per_second=rate * 0.4, size=60 + longer),
        ProducerSpec(name="small", idempotent=True, per_second=rate * 0.15, size=longer),
        ProducerSpec(
            name="bursts", idempotent=True, per_second=rate * 0.25, burst=40, size=300 + longer, compression="zstd"
        ),
        ProducerSpec(name="leader-only", idempotent=False, per_second=rate * 0.2, size=60 + longer),
    )


def line_of(record: StrikeRecord) -> str:
    """A strike, in a line."""
    nodes = ", ".join(f"n{blow.node_id} {blow.blow.value} ({blow.aim})" for blow in record.blows)
    whole = f"whole after {(record.whole_ms - record.began_ms) / 1000:.1f} s" if record.whole_ms >= 0 else "NOT WHOLE"
    evidence = "; ".join(blow.evidence for blow in record.blows)
    return f"{record.began_ms / 1000:6.1f} s  {record.strike.kind.value}: {nodes}, {whole}. {evidence}"


def _decode(run: int, sizes: tuple[int, ...], partition: int, value: bytes | None) -> RecordId:
    return decode(run, partition, value, sizes)
