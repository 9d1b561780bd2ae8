"""What retention may delete, and what it must: judged by the committed records, not by the code that deletes.

- start-follows-deletions: a log begins later than before only where someone asked for it, where another replica was
  right to do so first, or where a policy lets the records go. That policy was in force on this broker a short while
  ago: `retention.ms`, and every record is older; or `retention.bytes`, and what is left holds so many bytes; or one
  pass took the oldest segments by the second and those that follow by the first. Records that might go before this do
  not count: only those between the last allowed start and this one.
- expired-records-go: at the end, no log begins with a segment that has been expired for longer than some passes take.

A clock that was ahead may have been believed, so ages are judged by the latest wall time that this machine ever had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant, serving_brokers
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.machine.disk import names_in
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import DIRECTORIES
from jepsen.sim.time.scheduler import NS_PER_S
from jepsen.sim.truth.log_mirror import SEGMENT_SUFFIX, LogMirror
from jepsen.sim.truth.log_truth import LogTruth
from jepsen.sim.truth.mirrors import Mirrors, log_of
from quorumlog.configs.topic import TopicConfig
from quorumlog.ids import Offset
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.image import Image
from quorumlog_storage.files.names import DELETED_SUFFIX
from quorumlog_storage.retention.policy import Policy

REMEMBERED_NS = 30 * NS_PER_S  # a pass that began under an older policy has ended by then, also on a sick disk
PASSES_MAX = 6  # until what is expired has gone: one may be missed, one may doubt the clock
PASS_MAX_MS = 5_000  # of one pass over all logs, some jobs of a writer whose queue is short


class RetentionInvariants(Invariant):
    """moves: how often a policy explained a later start. retained: by log, the last such start."""

    def __init__(self, mirrors: Mirrors, findings: Findings) -> None:
        self._mirrors, self._findings = mirrors, findings
        self._settings: dict[str, dict[str, str]] = {}  # by topic name, in the newest image
        self._policies: dict[str, dict[Policy | None, int]] = {}  # by topic name: until when; the last one is in force
        self._wall_ms: dict[str, int] = {}  # the latest, by host
        self._lives: dict[tuple[str, str], int] = {}  # by host and log: the process in which it was seen to be open
        self.moves = 0
        self.retained: dict[str, Offset] = {}
        mirrors.may_begin_at = self._may_begin_at

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"starts moved by policies": self.moves}

    def on_image(self, image: Image) -> None:
        """The newest committed one."""
        for topic in image.sorted_topics():
            settings = image.topic_config(topic.name)
            if self._settings.get(topic.name) == settings:
                continue
            self._settings[topic.name] = dict(settings)
            known = self._policies.setdefault(topic.name, {})
            for policy in list(known)[-1:]:
                known[policy] = self._findings.now_ns()
            policy = _policy(TopicConfig.from_map(settings))
            known.pop(policy, None)
            known[policy] = 0

    def after_step(self, machine: Machine, changed: list[Replica]) -> None:
        """Called after each step of this broker's process, before anybody looks at its files."""
        self._wall_ms[machine.host] = max(self._wall_ms.get(machine.host, 0), machine.clock.wall_ms())
        for replica in changed:
            if replica.log is not None:
                self._lives[machine.host, log_of(replica)] = machine.life

    def _may_begin_at(self, machine: Machine, log: str, start: Offset) -> bool:
        """Whether a policy explains that a log has no segment before `start`."""
        name, truth = log.partition("@")[0], self._mirrors.truth(log)
        wall_ms = self._wall_ms.get(machine.host, machine.clock.wall_ms())
        policies = self._in_force(machine, log)
        for directory in DIRECTORIES:
            went = _Gone.of(machine, f"{directory}/{name}", truth.deleted_before, start)
            if any(went.is_explained(policy, truth, wall_ms) for policy in policies):
                self.moves += 1
                self.retained[log] = max(start, self.retained.get(log, 0))
                return True
        return False

    def _in_force(self, machine: Machine, log: str) -> list[Policy]:
        """Now or a short while ago; ever, where an earlier process may have noted what this one does."""
        is_new = self._lives.get((machine.host, log)) != machine.life
        known = self._policies.get(log.partition("@")[0].rpartition("-")[0], {})
        oldest_ns = self._findings.now_ns() - REMEMBERED_NS
        told = [policy for policy, until_ns in known.items() if is_new or until_ns == 0 or until_ns >= oldest_ns]
        plane = data_plane_of(machine)
        replicas = () if plane is None else plane.registry.replicas.values()
        own = [_policy(replica.config) for replica in replicas if log_of(replica) == log]  # perhaps of older metadata
        return [policy for policy in (*told, *own) if policy is not None]

    def at_the_end(self, image: Image, machines: dict[str, Machine]) -> None:
        for machine in serving_brokers(machines):
            plane = data_plane_of(machine)
            assert plane is not None, f"{machine.host} has not healed"
            for replica in plane.registry.replicas.values():
                self._check_expired(machine, replica, machine.config.replication.retention_check_interval_ms)

    def _check_expired(self, machine: Machine, replica: Replica, interval_ms: int) -> None:
        """interval_ms: `log.retention.check.interval.ms`. The settings have not changed for so long."""
        config, mirror = replica.config, self._mirrors.of_replica(machine, replica)
        first = mirror.batch_at(mirror.base)
        if config.retention_ms < 0 or "delete" not in config.cleanup_policy or first is None:
            return
        newest_ms = _newest_of(mirror, first.file)
        age_ms = machine.clock.wall_ms() - newest_ms
        bound_ms = PASSES_MAX * interval_ms + PASS_MAX_MS
        if age_ms > config.retention_ms + bound_ms and mirror.end <= replica.core.high_watermark:
            what = f"{replica.name} on {machine.host} begins with {first.file}"
            limit = f"expired {age_ms - config.retention_ms} ms ago; it should go within {bound_ms} ms"
            self._findings.broken("expired-records-go", f"{what}, {limit}")


def _newest_of(mirror: LogMirror, file: str) -> int:
    return max(one.max_timestamp for one in mirror.batches_between(mirror.base, mirror.end) if one.file == file)


def _policy(config: TopicConfig) -> Policy | None:
    is_deleted = "delete" in config.cleanup_policy
    return Policy(config.retention_ms, config.retention_bytes) if is_deleted else None


class _Gone(NamedTuple):
    """What went from a log in one directory. before, start: where it might begin until now, and where it does.

    left_bytes: of the segments that stay. retired: base offset and size of those that went, the newest first.
    """

    before: Offset
    start: Offset
    left_bytes: int
    retired: list[tuple[Offset, int]]

    @classmethod
    def of(cls, machine: Machine, path: str, before: Offset, start: Offset) -> _Gone:
        """path: of a partition's directory."""
        sizes = [(file, machine.disk.size_of(f"{path}/{file}")) for file in names_in(machine.disk, path)]
        left = sum(size for file, size in sizes if file.endswith(SEGMENT_SUFFIX) and int(file[:20]) >= start)
        retired = [(int(file[:20]), size) for file, size in sizes if file.endswith(SEGMENT_SUFFIX + DELETED_SUFFIX)]
        return cls(before, start, left, sorted((one for one in retired if before < one[0] < start), reverse=True))

    def is_explained(self, policy: Policy, truth: LogTruth, wall_ms: int) -> bool:
        """By size up to some segment, and by age from there on (rules 3 and 4 of `retention/policy.py`)."""
        if self._are_old(policy, truth, self.before, wall_ms):
            return True
        held = self.left_bytes
        if 0 <= policy.retention_bytes <= held:
            return True
        for base, size in self.retired:
            held += size
            if 0 <= policy.retention_bytes <= held and self._are_old(policy, truth, base, wall_ms):
                return True
        return False

    def _are_old(self, policy: Policy, truth: LogTruth, since: Offset, wall_ms: int) -> bool:
        newest_ms = truth.newest_between(since, self.start)
        return newest_ms >= 0 and 0 <= policy.retention_ms < wall_ms - newest_ms
