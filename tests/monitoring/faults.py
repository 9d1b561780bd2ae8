"""Made-up series: a healthy cluster of three nodes, and for each rule the fault that it is for.

A fault lasts as long as its rule waits, and FAULT_S more. All series of one cluster have the same number of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorumlog_server.monitoring.rules import DAY_S, Rule

STEP_S = 10
BEFORE, FAULT_S, AFTER = 12, 120, 40  # steps, seconds, steps: longer than any window but those of an hour
AFTER_AN_HOUR = 375  # steps
OF_AN_HOUR = ("QuorumlogMetadataErrors", "QuorumlogUncleanElection")
NODES = ("n1", "n2", "n3")  # n1 has the active controller

JOB = "JOB"

Values = list[float | None]  # None: there is no sample


@dataclass(frozen=True, slots=True)
class Length:
    """In steps."""

    fault: int
    after: int = AFTER

    @property
    def all(self) -> int:
        return BEFORE + self.fault + self.after

    def is_fault(self, step: int) -> bool:
        return BEFORE <= step < BEFORE + self.fault


Course = Callable[[Length], Values]


def level(healthy: float, faulty: float | None = None) -> Course:
    """A gauge; without a faulty value it stays."""
    bad = healthy if faulty is None else faulty
    return lambda length: [bad if length.is_fault(step) else healthy for step in range(length.all)]


def gone(healthy: float) -> Course:
    return lambda length: [None if length.is_fault(step) else healthy for step in range(length.all)]


def rising(usual: float, faulty: float, every: int = 1) -> Course:
    """A counter, or what rises as one: by so much each step, in a fault each `every` steps."""

    def course(length: Length) -> Values:
        found: Values = []
        now = 0.0
        for step in range(length.all):
            now += (faulty if (step - BEFORE) % every == 0 else 0) if length.is_fault(step) else usual
            found.append(now)
        return found

    return course


def once() -> Course:
    """A counter that rises by one, when the fault begins."""
    return lambda length: [float(step >= BEFORE) for step in range(length.all)]


def growing(usual: float = 0) -> Course:
    """A gauge that grows by a second in a second while the fault lasts."""
    return lambda length: [
        usual + (STEP_S * (step - BEFORE) if length.is_fault(step) else 0) for step in range(length.all)
    ]


def catching_up(from_s: float, part: float) -> Course:
    """A gauge of seconds that grows by a part of a second in a second: the group reads on, and slower than others
    produce."""
    return lambda length: [from_s + part * STEP_S * step for step in range(length.all)]


def name(series: str, instance: str, **labels: str) -> str:
    """With JOB in the place of the cluster."""
    pairs = {"job": JOB, "instance": instance, **labels}
    text = ",".join(f'{key}="{value}"' for key, value in pairs.items())
    return f"quorumlog_{series}{{{text}}}"


def healthy() -> dict[str, Course]:
    found: dict[str, Course] = {}
    for node in NODES:
        zeros = (
            "metadata_apply_lag_seconds", "metadata_errors_total", "offline_partitions", "brokers_fenced",
            "brokers_lost_total", "partitions_under_replicated", "partitions_under_min_isr",
            "fetcher_failed_partitions", "late_transactions", "dirs_offline", "cleaner_uncleanable",
        )  # fmt: skip
        found |= {name(one, node): level(0) for one in zeros}
        found |= {
            name("active_controller", node): level(node == "n1"),
            name("raft_epoch", node): level(5),
            name("uptime_seconds", node): rising(STEP_S, STEP_S),
            name("elections_total", node, kind="unclean"): level(0),
            name("elections_total", node, kind="usual"): rising(1, 1),
            name("loop_stall_seconds_count", node): rising(100, 100),
            name("loop_stall_seconds_bucket", node, le="1.0"): rising(100, 100),
            name("flush_seconds_count", node, dir="/data"): rising(20, 20),
            name("flush_seconds_bucket", node, dir="/data", le="0.5"): rising(20, 20),
            name("dir_free_bytes", node, dir="/data"): level(60),
            name("dir_total_bytes", node, dir="/data"): level(100),
            name("dir_short_of_space", node, dir="/data"): level(0),
            name("index_check_damaged_batches", node, dir="/data"): level(0),
            name("tls_expiry_seconds", node, listener="CLIENT"): level(40 * DAY_S),
            name("tls_certificate_refused", node, listener="CLIENT"): level(0),
            name("authentications_total", node, mechanism="SCRAM-SHA-256", result="failed"): rising(1, 1),
            name("authentications_total", node, mechanism="SCRAM-SHA-256", result="done"): rising(900, 900),
        }
    found |= {name("raft_follower_lag", "n1", node=node): level(0) for node in ("2", "3")}
    found |= {
        name("partition_records_in_total", node, topic="t", partition=str(index)): rising(2_000, 2_000)
        for index, node in enumerate(NODES)
    }
    found[name("group_lag", "n2", group="g", topic="t")] = level(500)
    found[name("group_lag_seconds", "n2", group="g", topic="t")] = level(3)
    return found


@dataclass(frozen=True, slots=True)
class Fault:
    """series: what differs from the healthy cluster. also: rules that fire besides. within_s: since the fault's first
    sample, where that counts; else the fault's end does."""

    rule: str
    series: Mapping[str, Course]
    also: frozenset[str] = field(default_factory=frozenset)
    what: str = "it"
    within_s: int | None = None


def _one(rule: str, series: str, instance: str, course: Course, *also: str, **labels: str) -> Fault:
    return Fault(rule, {name(series, instance, **labels): course}, frozenset(also))


FAULTS = (
    _one("QuorumlogNoController", "active_controller", "n1", level(1, 0)),
    Fault(
        "QuorumlogNoController",
        {name("active_controller", node): gone(node == "n1") for node in NODES},
        what="no node is scraped",
    ),
    Fault("QuorumlogNoController", {name("active_controller", "n2"): level(0, 1)}, what="two"),
    _one("QuorumlogQuorumChurn", "raft_epoch", "n2", rising(0, 1, every=2)),
    _one("QuorumlogVoterLagging", "raft_follower_lag", "n1", level(0, 5_000), node="2"),
    _one("QuorumlogMetadataLag", "metadata_apply_lag_seconds", "n3", level(0, 20)),
    _one("QuorumlogMetadataErrors", "metadata_errors_total", "n3", once()),
    _one("QuorumlogOfflinePartitions", "offline_partitions", "n1", level(0, 3)),
    _one("QuorumlogUnderMinIsr", "partitions_under_min_isr", "n2", level(0, 2)),
    _one("QuorumlogUnderReplicated", "partitions_under_replicated", "n2", level(0, 4), "QuorumlogFollowerBehind"),
    _one("QuorumlogFollowerBehind", "partitions_under_replicated", "n2", level(0, 4)),
    _one("QuorumlogUncleanElection", "elections_total", "n1", once(), kind="unclean"),
    _one("QuorumlogFetcherFailed", "fetcher_failed_partitions", "n2", level(0, 1)),
    Fault(
        "QuorumlogBrokerLost",
        {
            name("brokers_fenced", "n1"): level(0, 1),
            name("brokers_lost_total", "n1"): once(),
            name("partitions_under_replicated", "n1"): level(0, 9),
        },
    ),
    _one("QuorumlogBrokerFenced", "brokers_fenced", "n1", level(0, 1)),
    _one("QuorumlogLoopStall", "loop_stall_seconds_count", "n2", rising(100, 101)),
    _one("QuorumlogDirectoryOffline", "dirs_offline", "n3", level(0, 1)),
    _one("QuorumlogDirectoryFull", "dir_short_of_space", "n3", level(0, 1), dir="/data"),
    _one("QuorumlogDirectoryNearlyFull", "dir_free_bytes", "n1", level(60, 14), dir="/data"),
    _one("QuorumlogDiskSlow", "flush_seconds_count", "n1", rising(20, 21), dir="/data"),
    _one("QuorumlogDamagedRecords", "index_check_damaged_batches", "n1", level(0, 1), dir="/data"),
    _one("QuorumlogUncleanableLogs", "cleaner_uncleanable", "n1", level(0, 1)),
    _one("QuorumlogCertificateExpired", "tls_expiry_seconds", "n2", level(40 * DAY_S, -60), listener="CLIENT"),
    _one("QuorumlogCertificateExpires", "tls_expiry_seconds", "n2", level(40 * DAY_S, 5 * DAY_S), listener="CLIENT"),
    _one("QuorumlogCertificateRefused", "tls_certificate_refused", "n2", level(0, 1), listener="CLIENT"),
    _one(
        "QuorumlogLoginsFail", "authentications_total", "n1", rising(1, 200), mechanism="SCRAM-SHA-256", result="failed"
    ),
    _one("QuorumlogHotPartition", "partition_records_in_total", "n2", rising(2_000, 9_000), topic="t", partition="1"),
    Fault("QuorumlogGroupStuck", {name("group_lag_seconds", "n2", group="g", topic="t"): growing()}, within_s=20),
    _one("QuorumlogGroupStuck", "group_lag_seconds", "n2", growing(600), group="g", topic="t"),
    _one("QuorumlogGroupLag", "group_lag", "n2", level(500, 50_000), group="g", topic="t"),
    _one("QuorumlogTransactionHangs", "late_transactions", "n2", level(0, 1)),
)
RESTART_STEPS = 4


def _restarting(length: Length) -> Values:
    """The uptime of a node that is away for half a minute."""
    up = [float(STEP_S * step) for step in range(length.all)]
    back = BEFORE + RESTART_STEPS
    return [*up[:BEFORE], *[None] * RESTART_STEPS, *(float(STEP_S * step) for step in range(length.all - back))]


def _away(length: Length, healthy_value: float, missed: float, steps: int) -> Values:
    return [missed if BEFORE <= step < BEFORE + steps else healthy_value for step in range(length.all)]


def _sawing(length: Length) -> Values:
    """Of a group that commits each 30 s."""
    return [20.0 + STEP_S * (step % 3) for step in range(length.all)]


CALM = (
    Fault("", {}, what="nothing happens"),
    Fault(
        "",
        {
            name("uptime_seconds", "n2"): _restarting,
            name("brokers_fenced", "n1"): lambda length: _away(length, 0, 1, RESTART_STEPS),
            name("partitions_under_replicated", "n1"): lambda length: _away(length, 0, 9, RESTART_STEPS + 3),
            name("metadata_apply_lag_seconds", "n2"): lambda length: _away(length, 0, 300, 2),
        },
        what="a node is restarted in order",
    ),
    Fault("", {name("offline_partitions", "n2"): level(0, 7)}, what="a standby tells the past"),
    Fault(
        "",
        {name(f"dir_{one}_bytes", "n2", dir="/data"): level(0) for one in ("free", "total")},
        what="a directory is not measured yet",
    ),
    Fault("", {name("raft_epoch", "n2"): rising(0, 1, every=10)}, what="two elections"),
    Fault("", {name("group_lag_seconds", "n2", group="g", topic="t"): _sawing}, what="a group commits rarely"),
    Fault(
        "",
        {name("group_lag_seconds", "n2", group="g", topic="t"): catching_up(600, 0.5)},
        what="a group falls behind, and reads on",
    ),
)


def length_of(rule: Rule | None) -> Length:
    if rule is None:
        return Length(FAULT_S // STEP_S)
    after = AFTER_AN_HOUR if rule.name in OF_AN_HOUR else AFTER
    return Length(rule.for_ms // 1_000 // STEP_S + FAULT_S // STEP_S, after)
