"""What the clients of one quorum asked and were told: operations by key, and reads by client and broker process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jepsen.checkers.findings import Finding
from jepsen.linear.checker import Model, Outcome, check
from jepsen.linear.models import ABSENT, EXISTS, FIND, READ, SettingModel, TopicModel
from jepsen.linear.operation import Operation
from jepsen.linear.sequential import Read, impossible_reads
from jepsen.sim.quorum.committed_log import ABSENT_VERSION, CommittedLog

TOPIC_KEY = "retention.ms"  # the setting of a topic that clients change


class QuorumHistory:
    """topics, settings: operations by name and by setting. changed: answered changes. opened: those without an answer.

    refused: changes that certainly did nothing; they are in no history. confirmed: answers of the quorum.
    topic_reads, setting_reads: of brokers, by client and process.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self.topics: dict[str, list[Operation]] = {}
        self.settings: dict[str, list[Operation]] = {}
        self.topic_reads: dict[str, list[Read]] = {}
        self.setting_reads: dict[str, list[Read]] = {}
        self.begun = self.changed = self.observed = self.opened = self.refused = self.confirmed = 0

    def add(
        self,
        history: dict[str, list[Operation]],
        key: str,
        process: str,
        kind: str,
        argument: str,
        answer: str | None,
        invoked_ns: int,
    ) -> None:
        """An operation that ends now. answer: None: its outcome is not known."""
        if answer is None:
            self.opened += 1
        elif kind in (FIND, READ) or answer in (EXISTS, ABSENT):
            self.observed += 1
        else:
            self.changed += 1
        operations = history.setdefault(key, [])
        operations.append(
            Operation(
                number=len(operations),
                process=process,
                kind=kind,
                argument=argument,
                answer=answer,
                invoked_ns=invoked_ns,
                returned_ns=-1 if answer is None else self._now_ns(),
            )
        )

    def read_at_the_end(self, log: CommittedLog) -> None:
        """What is committed after everything: one more read of each key."""
        now_ns = self._now_ns()
        for name in self.topics:
            found = log.topics.at(name, log.image.offset)
            absent = found == ABSENT_VERSION
            self.add(self.topics, name, "the end", FIND, "", ABSENT if absent else found, now_ns)
            if not absent:
                value = log.settings.at(f"{name}/{TOPIC_KEY}", log.image.offset)
                self.add(self.topics, name, "the end", READ, "", value, now_ns)
        for key in self.settings:
            self.add(self.settings, key, "the end", READ, "", log.settings.at(key, log.image.offset), now_ns)

    def check(self, log: CommittedLog) -> list[Finding]:
        """linearizable, not-decided: of the operations of one key. sequential-reads: of one client at one broker."""
        found = []
        for name, operations in self.topics.items():
            found += self._judge(name, TopicModel(operations), operations)
        for key, operations in self.settings.items():
            found += self._judge(key, SettingModel(), operations)
        reads = impossible_reads(log.topics, self.topic_reads) + impossible_reads(log.settings, self.setting_reads)
        return found + [Finding("sequential-reads", what) for what in reads]

    def _judge(self, key: str, model: Model[Any], operations: list[Operation]) -> list[Finding]:
        verdict = check(model, operations)
        if verdict.outcome is Outcome.LINEARIZABLE:
            return []
        name = "linearizable" if verdict.outcome is Outcome.IMPOSSIBLE else "not-decided"
        return [Finding(name, f"{key}, {len(operations)} operations: {verdict}")]
