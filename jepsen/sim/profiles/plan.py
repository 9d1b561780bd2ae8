"""What a simulation does: drawn per seed (swarm testing), or by a named profile: faults, chores, features.

A new profile is an entry of PROFILES. A feature (feature.py) carries all that its runs have and others do not:
settings, clients, the counts of its invariants, and what must be exercised.

A swarm omits each kind of fault with probability 1/2, because a few faults together reach states that a mixture of all
faults hides. A profile aims at one mechanism; the seed still decides when its faults strike.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from jepsen.sim.cluster import SimCluster
from jepsen.sim.cuts import Cuts
from jepsen.sim.invariants.hooks import Invariants
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.layout import Layout
from jepsen.sim.profiles import making, operators
from jepsen.sim.profiles.backups import BACKS_UP
from jepsen.sim.profiles.feature import Feature, Rngs
from jepsen.sim.profiles.groups import GROUPS as GROUPS_RUN
from jepsen.sim.profiles.joint import JOINT as JOINT_RUN
from jepsen.sim.profiles.security import SECURITY as SECURITY_RUN
from jepsen.sim.profiles.transactions import TRANSACTIONS as TRANSACTIONS_RUN
from jepsen.sim.sizes import Sizes
from jepsen.sim.time.scheduler import Scheduler
from jepsen.sim.trace import Trace
from jepsen.sim.workload.activity import Activity
from jepsen.sim.workload.operator.chores import CHORES, DURABILITY, VOTERS
from jepsen.sim.workload.workload import Workload

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

# Profiles with features
RETENTION, INDEX_ROT, COMPACTION = "retention", "index-rot", "compaction"
PAGE_CACHE, BALANCED, NEAR_READERS = "page-cache", "balanced", "near-readers"
BROKERS, GROUPS, TRANSACTIONS, JOINT, IMPORTS = "brokers", "groups", "transactions", "joint", "imports"
DIRECTORIES, MOVES, REASSIGN, LATE_SETTINGS = "directories", "moves", "reassign", "late-settings"
SECOND_COPIES, LATE_DELETIONS = "second-copies", "late-deletions"
SECOND_COPY, LATE_LEADER, LATE_DELETION = "second-copy", "late-leader", "late-deletion"  # scripts
LEFT_BEHIND = "left-behind"  # a script, and the profile with it
SECURITY = "security"
BACKUPS = "backups"
LATE_SCRIPTS = ("raised-minimum", "raised-durability")
LATE = ("holding", "duplicating")  # requests that arrive twice, or late
_LATE_SHARE = 0.4  # of the seeds of the profiles with transactions
_DIRECTORIES_SHARE = 0.25  # of the swarm's seeds
_MOVES_SHARE = 0.7  # of those
FEATURES = (
    making.SOME_LAYOUT, making.MORE_BROKERS, making.TWO_DIRECTORIES, making.RECORDS_GO, making.INDEXES_ROT,
    making.NEAR_READERS,
    making.PAGE_CACHE, making.LONGEST_LOG_LEADS, making.LATE_SETTINGS, making.DELETIONS_STAY, making.BURSTS,
    operators.SPARES, operators.LEVELS, operators.COMPACTS, GROUPS_RUN, TRANSACTIONS_RUN, JOINT_RUN, operators.MOVES,
    operators.REASSIGNS, operators.IMPORTS, SECURITY_RUN, BACKS_UP,
)  # fmt: skip
_PARTS = tuple(feature.extra for feature in FEATURES if feature.extra)
EXTRAS = (*CHORES, VOTERS, DURABILITY, *_PARTS)  # what can be taken out of a plan beside its strikes


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """faults, chores: kinds. features: a run begins them in their order.

    pairs: share of the strikes that are pairs, 0 to 1. late_share: of its seeds that have the faults LATE, too.
    """

    faults: tuple[str, ...]
    chores: tuple[str, ...] = ()
    features: tuple[Feature, ...] = ()
    pairs: float = 0.0
    late_share: float = 0.0


PROFILES: dict[str, Profile] = {
    "topics": Profile(
        faults=("kill-broker", "power-one", "restart-clean", "dies-inside-a-call", "isolate", "lagging-follower"),
        chores=CHORES,
    ),
    "calm": Profile(faults=()),
    "levels": Profile(
        faults=("kill-controller", "kill-broker", "kill-leader", "power-one", "isolate", "restart-clean", "pause"),
        features=(operators.LEVELS,),
    ),
    "full-buffers": Profile(
        faults=("stopped-clients", "pause", "slow-disk", "lagging-follower", "kill-broker"), features=(making.BURSTS,)
    ),
    "restarted-voter": Profile(faults=("restarted-voter", "kill-controller")),
    "whole-isr": Profile(faults=("whole-isr", "kill-broker")),
    OLDER_DISK: Profile(faults=(OLDER_DISK,)),
    "split-votes": Profile(faults=("rival-candidates", "kill-leader", "slow", "pause", "isolate")),
    "isr": Profile(
        faults=("hold-alter-partition", "lagging-follower", "kill-broker", "pause", "fenced-joiner", "stale-proposal")
    ),
    "elections": Profile(faults=("kill-controller", "isolate", "pause", "power-one", "flapping", "kill-leader")),
    "truncation": Profile(faults=("power-one", "power-all", "kill-broker", "lagging-follower", "isolate")),
    "retries": Profile(faults=("lossy", "cut-clients", "kill-broker", "isolate", "restart-storm")),
    PAGE_CACHE: Profile(
        faults=("power-one", "power-one", "power-all", "kill-broker", "restart-clean", "lagging-follower", "slow-disk"),
        features=(making.PAGE_CACHE,),
    ),
    BROKERS: Profile(
        faults=(
            *("kill-broker", "power-one", "power-all", "isolate", "restart-storm", "restart-clean", "lagging-follower"),
            *(NEW_DISK, NEW_DISK),
        ),
        chores=CHORES,
        features=(making.MORE_BROKERS,),
    ),
    NEAR_READERS: Profile(
        faults=("kill-broker", "power-one", "restart-clean", "isolate", "pause", "lagging-follower", "late-metadata"),
        chores=CHORES,
        features=(making.NEAR_READERS,),
    ),
    BALANCED: Profile(
        faults=("power-all", "power-one", "kill-broker", "kill-controller", "restart-clean", "lagging-follower"),
        features=(making.PAGE_CACHE, making.LONGEST_LOG_LEADS),
    ),
    RETENTION: Profile(
        faults=(
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
        chores=CHORES,
        features=(making.RECORDS_GO,),
    ),
    INDEX_ROT: Profile(
        faults=("kill-broker", "power-one", "restart-clean", "lagging-follower", "isolate", "slow-disk"),
        features=(making.INDEXES_ROT, operators.COMPACTS),
    ),
    DIRECTORIES: Profile(
        faults=(*DIRECTORY_FAULTS * 2, "kill-broker", "power-one", "restart-clean", "lagging-follower"),
        chores=CHORES,
        features=(making.TWO_DIRECTORIES,),
    ),
    MOVES: Profile(
        faults=(
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
        chores=CHORES,
        features=(making.TWO_DIRECTORIES, operators.MOVES),
    ),
    REASSIGN: Profile(
        faults=(
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
        chores=("topics-anew", "partitions-added", "settings", DURABILITY),
        features=(operators.SPARES, operators.REASSIGNS),
    ),
    LATE_SETTINGS: Profile(
        faults=(*LATE_SCRIPTS * 4, "late-metadata", "slow-disk", "kill-broker", "restart-clean"),
        chores=("settings", DURABILITY),
        features=(making.LATE_SETTINGS,),
    ),
    SECOND_COPIES: Profile(
        faults=(*(SECOND_COPY,) * 8, "power-one", "kill-broker", "restart-clean", "slow-disk", "failing-directory"),
        chores=("topics-anew", "partitions-added"),
        features=(making.TWO_DIRECTORIES, operators.MOVES),
    ),
    "late-leaders": Profile(faults=(*(LATE_LEADER,) * 8, "kill-broker", "restart-clean", "slow-disk")),
    LATE_DELETIONS: Profile(
        faults=(*(LATE_DELETION,) * 8, "restart-clean", "slow-disk"), features=(making.DELETIONS_STAY,)
    ),
    LEFT_BEHIND: Profile(faults=(*(LEFT_BEHIND,) * 8, "restart-clean", "slow-disk")),
    SECURITY: Profile(
        faults=(
            *OF_CONTROLLERS,
            *("kill-broker", "power-one", "restart-clean", "pause", "isolate", "late-metadata", "slow-disk"),
            *("cut-clients", "lagging-follower"),
        ),
        features=(SECURITY_RUN,),
    ),
    BACKUPS: Profile(
        faults=(
            *("kill-broker", "kill-broker", KILLED_COORDINATOR, "kill-controller", "power-one", "pause"),
            *("restart-clean", "isolate", "one-way", "lagging-follower", "slow-disk"),
        ),
        features=(BACKS_UP,),
    ),
    IMPORTS: Profile(
        faults=(*OF_CONTROLLERS, "kill-broker", "restart-clean", "isolate", "slow-disk"), features=(operators.IMPORTS,)
    ),
    VOTERS: Profile(
        faults=(*OF_CONTROLLERS, "isolate", "partial", "pause", "power-one", "restart-clean", "slow-disk"),
        chores=(VOTERS,),
    ),
    "disks": Profile(faults=("power-one", "power-all", "slow-disk")),
    "pairs": Profile(faults=AIMED, pairs=1.0),
    "inside-calls": Profile(
        faults=("dies-inside-a-call", "dies-inside-a-call", "kill-broker", "kill-leader", "lagging-follower")
    ),
    COMPACTION: Profile(
        faults=(
            "kill-broker",
            "power-one",
            "power-all",
            "restart-clean",
            "lagging-follower",
            "isolate",
            "slow-disk",
            "dies-inside-a-call",
        ),
        features=(operators.COMPACTS,),
    ),
    GROUPS: Profile(
        faults=(
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
        features=(GROUPS_RUN,),
    ),
    TRANSACTIONS: Profile(
        faults=(
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
        features=(TRANSACTIONS_RUN,),
        late_share=_LATE_SHARE,
    ),
    JOINT: Profile(
        faults=(
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
        features=(JOINT_RUN,),
        late_share=_LATE_SHARE,
    ),
    "memory": Profile(faults=("out-of-memory", "out-of-memory", "kill-broker", "lagging-follower")),
    "sick-leaders": Profile(faults=TIMED),
    "sick-disks": Profile(faults=(*SICK_DISKS, "hanging-disk", "kill-broker", "slow-disk", "power-one", "pause")),
    "failing-disks": Profile(faults=("failing-disk", "failing-disk", "kill-broker", "slow-disk", "power-one")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """faults: kinds that may strike. min_gap_ms, max_gap_ms: time between two strikes.

    pairs: share of the strikes that are pairs, 0 to 1. chores: kinds of what the operator does meanwhile.
    features: a run begins them in their order.
    """

    name: str
    faults: tuple[str, ...]
    min_gap_ms: int = 300
    max_gap_ms: int = 4_000
    pairs: float = 0.0
    chores: tuple[str, ...] = ()
    features: tuple[Feature, ...] = ()

    @property
    def is_timed(self) -> bool:
        """Nothing strikes but scripts that say how soon another leads, or the same one again."""
        return all(fault in TIMED for fault in self.faults)

    @property
    def delays_requests(self) -> bool:
        """A message may arrive twice, or after its answer was given up."""
        return any(fault in self.faults for fault in ("holding", "duplicating"))

    @property
    def bursts(self) -> bool:
        return any(feature.bursts for feature in self.features)

    @property
    def activities(self) -> list[Callable[[Workload], Activity]]:
        return [feature.activity for feature in self.features if feature.activity is not None]

    @property
    def extras(self) -> tuple[str, ...]:
        """Those of EXTRAS that it has."""
        return (*self.chores, *(feature.extra for feature in self.features if feature.extra))

    def cut(self, cuts: Cuts) -> Plan:
        """Its faults stay: strikes are taken out one by one (strikes/nemesis.py)."""
        kept = cuts.extras
        if kept is None:
            return self
        features = tuple(one for one in self.features if not one.extra or one.extra in kept)
        return replace(self, chores=tuple(chore for chore in self.chores if chore in kept), features=features)

    # --- the cluster ---

    def layout(self, rng: Rngs) -> Layout:
        return next((feature.layout(rng) for feature in self.features if feature.layout is not None), Layout())

    def cluster(self, seed: int, trace: Trace, layout: Layout) -> SimCluster:
        rng = Scheduler(seed).rng
        sizes = Sizes.of_seed(rng, [feature.always for feature in self.features])
        config: dict[str, str] = {}
        for feature in self.features:
            sizes = feature.sizes(sizes, rng)
            config |= {**feature.settings, **feature.drawn_settings(rng)}
        directories = max([feature.directories for feature in self.features], default=1)
        secured = any(feature.secured for feature in self.features)
        made = SimCluster(
            seed, trace, directories=directories, sizes=sizes, config=config, layout=layout, secured=secured
        )
        for feature in self.features:
            feature.watch(made.invariants)
        return made

    def looks_elsewhere(self, invariants: Invariants) -> list[Invariant]:
        """Invariants whose counts say nothing in such a run."""
        looks = [one for feature in self.features for one in feature.looks(invariants)]
        every = [one for feature in FEATURES for one in feature.looks(invariants)]
        return [one for one in every if one not in looks]

    @classmethod
    def swarm(cls, rng: random.Random) -> Plan:
        faults = tuple(fault for fault in ALL_FAULTS if rng.random() < 0.5)
        plan = cls(
            name="swarm",
            faults=faults or ("kill-broker",),
            max_gap_ms=rng.choice((1_500, 4_000, 8_000)),
            pairs=rng.choice((0.0, 0.3, 0.6)),
            chores=tuple(chore for chore in CHORES if rng.random() < 0.5),
            features=(
                making.SOME_LAYOUT,
                *((making.BURSTS,) if rng.random() < 0.3 else ()),
                *((operators.LEVELS,) if rng.random() < 0.4 else ()),
            ),
        )
        if rng.random() >= _DIRECTORIES_SHARE:
            return plan
        more = tuple(fault for fault in DIRECTORY_FAULTS if rng.random() < 0.7)
        moves = (operators.MOVES,) if rng.random() < _MOVES_SHARE else ()
        return replace(plan, faults=(*plan.faults, *more), features=(*plan.features, making.TWO_DIRECTORIES, *moves))

    @classmethod
    def of(cls, profile: str, rng: random.Random) -> Plan:
        """Raises KeyError for an unknown profile."""
        if profile == "swarm":
            return cls.swarm(rng)
        made = PROFILES[profile]
        late = LATE if made.late_share and rng.random() < made.late_share else ()
        return cls(
            name=profile,
            faults=(*made.faults, *late),
            max_gap_ms=2_500,
            pairs=made.pairs,
            chores=made.chores,
            features=made.features,
        )
