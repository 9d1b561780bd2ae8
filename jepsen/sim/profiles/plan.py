"""The faults that a simulation may inject: drawn per seed (swarm testing), or by a named profile.

A swarm omits each kind of fault with probability 1/2, because a few faults together reach states that a mixture of all
faults hides. A profile aims at one mechanism; the seed still decides when its faults strike.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from jepsen.sim.shrink.cuts import Cuts

PROCESS = (
    "kill-controller",
    "kill-broker",
    "power-one",
    "power-all",
    "pause",
    "restart-clean",
    "restart-storm",
    "stopped-clients",
)
NETWORK = (
    "isolate",
    "split",
    "one-way",
    "partial",
    "cut-clients",
    "lossy",
    "duplicating",
    "slow",
    "holding",
    "flapping",
)
SICK_DISKS = ("hanging-disk", "unreadable-disk")
SICK_LEADERS = ("hung-leader", "unreadable-leader")  # alone, they must move the leadership in time (sick_leaders.py)
DISKS = ("slow-disk", "dies-inside-a-call", "out-of-memory", *SICK_DISKS)
OTHER = ("wall-clock", "wrong-refusal", "hold-alter-partition", "lagging-follower")
SCRIPTED = (  # aimed.py, rivals.py, restarted_voter.py, whole_isr.py
    "fenced-joiner",
    "stale-proposal",
    "rival-candidates",
    "restarted-voter",
    "whole-isr",
    *SICK_LEADERS,
)
NEW_DISK = "new-disk"  # a script (new_disk.py)
KILLED_COORDINATOR, KILLED_HOLDER = "killed-coordinator", "killed-holder"  # scripts (killed_coordinator.py)
KILLED_IN_BATCH = "killed-in-batch"  # likewise
DIRECTORY_FAULTS = ("failing-directory", "hanging-directory", "vanished-directory", NEW_DISK)  # of brokers with two
LONE_LEADER = "lone-leader"  # a script (lone_leader.py)
TIMED = (*SICK_LEADERS, LONE_LEADER)
OLDER_DISK = "older-disk"  # has its own profile: older_disk.py says why
ALL_FAULTS = (
    *PROCESS,
    *NETWORK,
    *DISKS,
    *OTHER,
    *SCRIPTED,
)  # of the swarm; "failing-disk" and OLDER_DISK have their own profiles
CHORES = ("topics-anew", "delete-records", "settings", "partitions-added")  # of an operator (chores.py)
DURABILITY = "durability"  # the operator changes `durability` (chores.py): of the profile with late settings
VOTERS = "voters"  # the operator changes the voters (voter_chore.py): a chore with a profile of its own
OF_CONTROLLERS = ("kill-controller", "kill-leader")
AIMED = (  # strikes whose victims can be named, so that they can meet in pairs
    *OF_CONTROLLERS,
    "kill-broker",
    "power-one",
    "pause",
    "restart-clean",
    "restart-storm",
    "isolate",
    "one-way",
    "partial",
    "cut-clients",
    "flapping",
    "lagging-follower",
    *DISKS,
)

RETENTION = "retention"  # the profile in which all topics let records go
INDEX_ROT = "index-rot"  # the profile in which bits of index files flip (index_rot.py)
COMPACTION = "compaction"  # the profile in which one more topic is compacted (compaction.py)
PAGE_CACHE = "page-cache"  # the profile in which all topics are `durability=replicated`
BALANCED = "balanced"  # the same, and the longest log leads where no replica is known to be whole
BROKERS = "brokers"  # the profile with four to six brokers, some of them in racks (layout.py)
GROUPS = "groups"  # the profile in which there is a consumer group (groups.py)
TRANSACTIONS = "transactions"  # the profile with transactional clients (workload/transactions.py)
JOINT = "joint"  # the profile with drivers of joint transactions (workload/joint.py)
LATE = ("holding", "duplicating")  # requests that arrive twice, or late
_LATE_SHARE = 0.4  # of the seeds of the profiles with transactions
DIRECTORIES = "directories"  # the profile in which every broker has two log directories
MOVES = "moves"  # the profile in which replicas move between log directories all the time
_DIRECTORIES_SHARE = 0.25  # of the swarm's seeds
_MOVES_SHARE = 0.7  # of those
LATE_SETTINGS = "late-settings"  # the profile in which settings change while brokers are behind (late_settings.py)
LATE_SCRIPTS = ("raised-minimum", "raised-durability")
SECOND_COPY = "second-copy"  # a script (second_copy.py)
SECOND_COPIES = "second-copies"  # the profile with that script
LATE_LEADER = "late-leader"  # a script (late_leader.py)
LATE_DELETION = "late-deletion"  # a script (late_deletion.py)
LATE_DELETIONS = "late-deletions"  # the profile with that script
LEFT_BEHIND = "left-behind"  # a script (left_behind.py), and the profile with it
IMPORTS = "imports"  # the profile in which an operator imports topics (workload/imports.py)
REASSIGN = "reassign"  # the profile in which partitions move between brokers all the time
_OTHERS = ("bursts", "levels", "compacts", "groups", "transactions", "joint")
_PARTS = (*_OTHERS, "moves", "reassigns", "imports")  # fields of `Plan`
EXTRAS = (*CHORES, VOTERS, DURABILITY, *_PARTS)  # what can be taken out of a plan beside its strikes
_OWN_CHORES = {  # of profiles
    VOTERS: (VOTERS,),
    REASSIGN: ("topics-anew", "partitions-added", "settings", DURABILITY),
    LATE_SETTINGS: ("settings", DURABILITY),
    SECOND_COPIES: ("topics-anew", "partitions-added"),
}
_WITH_CHORES = ("topics", BROKERS, "retention", DIRECTORIES, MOVES)  # profiles, like the next two
_WITH_BURSTS, _WITH_LEVELS = ("full-buffers",), ("levels",)

PROFILES: dict[str, tuple[str, ...]] = {
    "topics": ("kill-broker", "power-one", "restart-clean", "dies-inside-a-call", "isolate", "lagging-follower"),
    "calm": (),
    "levels": ("kill-controller", "kill-broker", "kill-leader", "power-one", "isolate", "restart-clean", "pause"),
    "full-buffers": ("stopped-clients", "pause", "slow-disk", "lagging-follower", "kill-broker"),
    "restarted-voter": ("restarted-voter", "kill-controller"),
    "whole-isr": ("whole-isr", "kill-broker"),
    OLDER_DISK: (OLDER_DISK,),
    "split-votes": ("rival-candidates", "kill-leader", "slow", "pause", "isolate"),
    "isr": ("hold-alter-partition", "lagging-follower", "kill-broker", "pause", "fenced-joiner", "stale-proposal"),
    "elections": ("kill-controller", "isolate", "pause", "power-one", "flapping", "kill-leader"),
    "truncation": ("power-one", "power-all", "kill-broker", "lagging-follower", "isolate"),
    "retries": ("lossy", "cut-clients", "kill-broker", "isolate", "restart-storm"),
    PAGE_CACHE: (
        "power-one",
        "power-one",
        "power-all",
        "kill-broker",
        "restart-clean",
        "lagging-follower",
        "slow-disk",
    ),
    BROKERS: (
        *("kill-broker", "power-one", "power-all", "isolate", "restart-storm", "restart-clean", "lagging-follower"),
        *(NEW_DISK, NEW_DISK),
    ),
    BALANCED: ("power-all", "power-one", "kill-broker", "kill-controller", "restart-clean", "lagging-follower"),
    RETENTION: (
        "power-one",
        "power-all",
        "kill-broker",
        "restart-clean",
        "lagging-follower",
        "isolate",
        "wall-clock",
        "slow-disk",
        "dies-inside-a-call",
    ),
    INDEX_ROT: ("kill-broker", "power-one", "restart-clean", "lagging-follower", "isolate", "slow-disk"),
    DIRECTORIES: (*DIRECTORY_FAULTS * 2, "kill-broker", "power-one", "restart-clean", "lagging-follower"),
    MOVES: (
        "kill-broker",
        "power-one",
        "power-all",
        "restart-clean",
        "lagging-follower",
        "isolate",
        "slow-disk",
        "dies-inside-a-call",
        "failing-directory",
    ),
    REASSIGN: (
        *OF_CONTROLLERS,
        "kill-broker",
        "power-one",
        "power-all",
        "restart-clean",
        "lagging-follower",
        "isolate",
        "pause",
        "slow-disk",
        "dies-inside-a-call",
    ),
    LATE_SETTINGS: (*LATE_SCRIPTS * 4, "late-metadata", "slow-disk", "kill-broker", "restart-clean"),
    SECOND_COPIES: (*(SECOND_COPY,) * 8, "power-one", "kill-broker", "restart-clean", "slow-disk", "failing-directory"),
    "late-leaders": (*(LATE_LEADER,) * 8, "kill-broker", "restart-clean", "slow-disk"),
    LATE_DELETIONS: (*(LATE_DELETION,) * 8, "restart-clean", "slow-disk"),
    LEFT_BEHIND: (*(LEFT_BEHIND,) * 8, "restart-clean", "slow-disk"),
    IMPORTS: (*OF_CONTROLLERS, "kill-broker", "restart-clean", "isolate", "slow-disk"),
    VOTERS: (*OF_CONTROLLERS, "isolate", "partial", "pause", "power-one", "restart-clean", "slow-disk"),
    "disks": ("power-one", "power-all", "slow-disk"),
    "pairs": AIMED,
    "inside-calls": ("dies-inside-a-call", "dies-inside-a-call", "kill-broker", "kill-leader", "lagging-follower"),
    COMPACTION: (
        "kill-broker",
        "power-one",
        "power-all",
        "restart-clean",
        "lagging-follower",
        "isolate",
        "slow-disk",
        "dies-inside-a-call",
    ),
    GROUPS: (
        "kill-broker",
        "kill-broker",
        KILLED_HOLDER,
        KILLED_HOLDER,
        "power-one",
        "pause",
        "restart-clean",
        "isolate",
        "cut-clients",
        "lagging-follower",
        "slow-disk",
        "wall-clock",
    ),
    TRANSACTIONS: (
        "kill-broker",
        KILLED_COORDINATOR,
        KILLED_COORDINATOR,
        "power-one",
        "pause",
        "restart-clean",
        "isolate",
        "one-way",
        "cut-clients",
        "lagging-follower",
        "slow-disk",
        "wall-clock",
        "dies-inside-a-call",
    ),
    JOINT: (
        "kill-broker",
        KILLED_COORDINATOR,
        KILLED_COORDINATOR,
        KILLED_IN_BATCH,
        KILLED_IN_BATCH,
        "power-one",
        "pause",
        "restart-clean",
        "isolate",
        "one-way",
        "cut-clients",
        "lagging-follower",
        "slow-disk",
        "wall-clock",
        "dies-inside-a-call",
    ),
    "memory": ("out-of-memory", "out-of-memory", "kill-broker", "lagging-follower"),
    "sick-leaders": TIMED,
    "sick-disks": (*SICK_DISKS, "hanging-disk", "kill-broker", "slow-disk", "power-one", "pause"),
    "failing-disks": ("failing-disk", "failing-disk", "kill-broker", "slow-disk", "power-one"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """faults: kinds that may strike. min_gap_ms, max_gap_ms: time between two strikes.

    pairs: share of the strikes that are pairs, 0 to 1. chores: kinds of what the operator does meanwhile.
    bursts: producers sometimes send more at once than a broker's buffers hold.
    levels: the nodes begin with older software, and are replaced one by one (levels.py).
    directories: log directories of each broker. moves: an operator moves replicas between them (workload/moves.py).
    reassigns: an operator moves partitions between brokers (workload/reassignments.py).
    imports: an operator imports topics (workload/imports.py).
    groups: there is a consumer group (workload/groups.py).
    transactions: there are transactional clients (workload/transactions.py).
    joint: there are drivers of joint transactions (workload/joint.py).
    compacts: there is a compacted topic, and a producer for it (compaction.py).
    """

    name: str
    faults: tuple[str, ...]
    min_gap_ms: int = 300
    max_gap_ms: int = 4_000
    pairs: float = 0.0
    chores: tuple[str, ...] = ()
    bursts: bool = False
    levels: bool = False
    compacts: bool = False
    directories: int = 1
    groups: bool = False
    transactions: bool = False
    joint: bool = False
    moves: bool = False
    reassigns: bool = False
    imports: bool = False

    @property
    def is_timed(self) -> bool:
        """Nothing strikes but scripts that say how soon another leads, or the same one again."""
        return all(fault in TIMED for fault in self.faults)

    @property
    def delays_requests(self) -> bool:
        """A message may arrive twice, or after its answer was given up."""
        return any(fault in self.faults for fault in ("holding", "duplicating"))

    @property
    def has_coordinators(self) -> bool:
        return self.groups or self.transactions or self.joint

    @property
    def extras(self) -> tuple[str, ...]:
        """Those of EXTRAS that it has."""
        return (*self.chores, *(name for name in _PARTS if getattr(self, name)))

    def cut(self, cuts: Cuts) -> Plan:
        """Its faults stay: strikes are taken out one by one (strikes/nemesis.py)."""
        kept = cuts.extras
        if kept is None:
            return self
        parts = {name: getattr(self, name) and name in kept for name in _PARTS}
        return replace(self, chores=tuple(chore for chore in self.chores if chore in kept), **parts)  # type: ignore[arg-type]

    @classmethod
    def swarm(cls, rng: random.Random) -> Plan:
        faults = tuple(fault for fault in ALL_FAULTS if rng.random() < 0.5)
        plan = cls(
            name="swarm",
            faults=faults or ("kill-broker",),
            max_gap_ms=rng.choice((1_500, 4_000, 8_000)),
            pairs=rng.choice((0.0, 0.3, 0.6)),
            chores=tuple(chore for chore in CHORES if rng.random() < 0.5),
            bursts=rng.random() < 0.3,
            levels=rng.random() < 0.4,
        )
        if rng.random() >= _DIRECTORIES_SHARE:
            return plan
        more = tuple(fault for fault in DIRECTORY_FAULTS if rng.random() < 0.7)
        moves = rng.random() < _MOVES_SHARE
        return replace(plan, faults=(*plan.faults, *more), directories=2, moves=moves)

    @classmethod
    def of(cls, profile: str, rng: random.Random) -> Plan:
        """Raises KeyError for an unknown profile."""
        if profile == "swarm":
            return cls.swarm(rng)
        pairs = 1.0 if profile == "pairs" else 0.0
        chores = CHORES if profile in _WITH_CHORES else _OWN_CHORES.get(profile, ())
        late = LATE if profile in (TRANSACTIONS, JOINT) and rng.random() < _LATE_SHARE else ()
        return cls(
            name=profile,
            faults=(*PROFILES[profile], *late),
            max_gap_ms=2_500,
            pairs=pairs,
            chores=chores,
            bursts=profile in _WITH_BURSTS,
            levels=profile in _WITH_LEVELS,
            compacts=profile in (COMPACTION, INDEX_ROT),
            groups=profile == GROUPS,
            transactions=profile == TRANSACTIONS,
            joint=profile == JOINT,
            directories=2 if profile in (DIRECTORIES, MOVES, SECOND_COPIES) else 1,
            moves=profile in (MOVES, SECOND_COPIES),
            reassigns=profile == REASSIGN,
            imports=profile == IMPORTS,
        )
