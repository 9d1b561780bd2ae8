"""The second act: a consumer group of three counts the flights transactionally, while a member and a broker are killed.

Each member commits its counts and its offsets together, so the counts that a reader of committed records sees are
exact at every moment, and equal the CSV's at the end.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from quorumlog_cli.demo.carriers import count_problems, sum_counts
from quorumlog_cli.demo.crew import Crew
from quorumlog_cli.demo.fault import Moment
from quorumlog_cli.demo.flights import Figures
from quorumlog_cli.demo.member import GROUP
from quorumlog_cli.demo.steps import Steps

if TYPE_CHECKING:
    from quorumlog.client.blocking_consumer import Consumer
    from quorumlog.ids import NodeId
    from quorumlog.testing import LocalCluster

COUNTS = "flights-by-carrier"
COUNT_PARTITIONS = 3
MEMBERS = 3
KILL_MEMBER_AT, KILL_BROKER_AT = 1 / 5, 1 / 2  # shares of the flights counted
VICTIM = 1
RESTART_AFTER_S = 1.0
TRANSACTIONS = 90  # at least, in all
LIMIT_S = 120.0  # of the whole act, which takes 20 s where the machine is free


@dataclass(slots=True)
class SecondAct:
    """figures: of the CSV. column: of the carrier in the CSV. folder: of the members' logs."""

    cluster: LocalCluster
    steps: Steps
    source: str
    figures: Mapping[str, Figures]
    column: int
    folder: Path
    moments: list[Moment] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    aborted: int = 0  # records of transactions that were not committed
    started: float = 0.0  # time.monotonic(), in s
    took_s: float = 0.0
    _restart_at: float | None = None
    _killed_node: NodeId | None = None
    _member_killed: bool = False

    @property
    def flights(self) -> int:
        return sum(one.flights for one in self.figures.values())

    def run(self) -> list[str]:
        """Returns the problems; none after a good run. Raises the clients' errors."""
        self.started = time.monotonic()
        self.cluster.client.admin.create_topic(COUNTS, COUNT_PARTITIONS, 3, {"min.insync.replicas": "2"})
        at_once = max(1, self.flights // TRANSACTIONS)
        arguments = [
            "--bootstrap-servers", self.cluster.bootstrap_servers, "--source", self.source, "--target", COUNTS,
            "--column", str(self.column), "--at-once", str(at_once),
        ]  # fmt: skip
        try:
            with Crew(MEMBERS, arguments, self.folder) as crew:
                problems = self._watch(crew, self.started + LIMIT_S)
                problems += crew.end()
        finally:
            self._start_again()
        self.took_s = time.monotonic() - self.started
        self.steps.done(f"{self.flights:,} flights counted by a group of {MEMBERS}", self.took_s)
        return problems + self._compare()

    def story(self) -> list[str]:
        return [
            f"{MEMBERS} members counted {self.flights:,} flights into {COUNTS} in {self.took_s:.1f} s",
            *(f"{moment.when - self.started:.2f} s: {moment.what}" for moment in self.moments),
            f"{sum(self.counts.values()):,} flights in the counts that readers of committed records see; "
            f"{self.aborted} records of aborted transactions are not among them",
        ]

    def _watch(self, crew: Crew, deadline: float) -> list[str]:
        """Until every flight is counted, or too late."""
        problems: list[str] = []
        counted = 0
        reader = self.cluster.client.consumer(COUNTS, isolation_level="read_committed")
        with self.steps.progress() as progress, reader as consumer:
            task = progress.add_task("flights counted", total=self.flights, speed="read committed")
            while counted < self.flights and not problems:
                counted += sum(sum_counts(_parts(consumer, 200)).values())
                progress.update(task, completed=counted)
                self._strike(crew, counted)
                problems += crew.ended()
                if time.monotonic() > deadline:
                    problems.append(f"only {counted:,} of {self.flights:,} flights were counted in {LIMIT_S:.0f} s")
        if not problems and not (self._member_killed and self._killed_node is not None):
            problems.append("the flights were counted before a member and a broker had been killed")
        return problems

    def _strike(self, crew: Crew, counted: int) -> None:
        if not self._member_killed and counted >= self.flights * KILL_MEMBER_AT:
            self._member_killed = True
            crew.kill(VICTIM)
            self._note(f"kill -9 member {VICTIM} of the group, {counted:,} flights counted")
            self._restart_at = time.monotonic() + RESTART_AFTER_S
        if self._restart_at is not None and time.monotonic() >= self._restart_at:
            self._restart_at = None
            crew.start(VICTIM)
            self._note(f"member {VICTIM} is started again; its transaction is aborted")
        if self._killed_node is None and counted >= self.flights * KILL_BROKER_AT:
            node = self.cluster.client.admin.describe_group(GROUP).coordinator
            self.cluster.kill(node)
            self._killed_node = node
            self._note(f"kill -9 node {node}, which coordinates the group, {counted:,} flights counted")

    def _start_again(self) -> None:
        """Whatever has happened, the cluster is whole afterwards."""
        if self._killed_node is not None:
            self.cluster.restart(self._killed_node)
            self._note(f"node {self._killed_node} is started again")

    def _compare(self) -> list[str]:
        with self.steps.step("counts, read committed, compared with the CSV") as details:
            committed = self._read("read_committed")
            self.counts = sum_counts(committed)
            every = self._read("read_uncommitted")
            self.aborted = len(every) - len(committed)
            problems = count_problems(self.counts, self.figures)
            read = self._flights_read()
            if read != self.flights:
                problems.append(f"the group's offsets are at {read:,} of {self.flights:,} flights")
            details.append(f"{len(problems)} problems" if problems else "every count is equal")
            details.append(f"{self.aborted} records of aborted transactions left out")
        return problems

    def _flights_read(self) -> int:
        """Those before the group's offsets: the topic of flights has no gap."""
        found = self.cluster.client.admin.group_offsets(GROUP, require_stable=True)
        return sum(one.offset for (topic, _), one in found.items() if topic == self.source)

    def _read(self, level: str) -> list[tuple[bytes | None, bytes | None]]:
        found: list[tuple[bytes | None, bytes | None]] = []
        with self.cluster.client.consumer(COUNTS, stop="latest", isolation_level=level) as consumer:
            while not consumer.finished:
                found += _parts(consumer, 1_000)
        return found

    def _note(self, what: str) -> None:
        self.moments.append(Moment(time.monotonic(), what))
        self.steps.say(what)


def _parts(consumer: Consumer, timeout_ms: int) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in consumer.poll(timeout_ms=timeout_ms)]
