"""The faults that a simulation may inject: drawn per seed (swarm testing), or by a named profile.

A swarm omits each kind of fault with probability 1/2, because a few faults together reach states that a mixture of all
faults hides (RELIABILITY 5.4). A profile aims at one mechanism; the seed still decides when its faults strike.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

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
OLDER_DISK = "older-disk"  # has its own profile: older_disk.py says why
ALL_FAULTS = (
    *PROCESS,
    *NETWORK,
    *DISKS,
    *OTHER,
    *SCRIPTED,
)  # of the swarm; "failing-disk" and OLDER_DISK have their own profiles
CHORES = ("topics-anew", "delete-records", "settings", "partitions-added")  # of an operator (chores.py)
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

PAGE_CACHE = "page-cache"  # the profile in which all topics are `durability=replicated`
_WITH_CHORES, _WITH_BURSTS = ("topics",), ("full-buffers",)  # profiles

PROFILES: dict[str, tuple[str, ...]] = {
    "topics": ("kill-broker", "power-one", "restart-clean", "dies-inside-a-call", "isolate", "lagging-follower"),
    "calm": (),
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
    "disks": ("power-one", "power-all", "slow-disk"),
    "pairs": AIMED,
    "inside-calls": ("dies-inside-a-call", "dies-inside-a-call", "kill-broker", "kill-leader", "lagging-follower"),
    "memory": ("out-of-memory", "out-of-memory", "kill-broker", "lagging-follower"),
    "sick-leaders": SICK_LEADERS,
    "sick-disks": (*SICK_DISKS, "hanging-disk", "kill-broker", "slow-disk", "power-one", "pause"),
    "failing-disks": ("failing-disk", "failing-disk", "kill-broker", "slow-disk", "power-one"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """faults: kinds that may strike. min_gap_ms, max_gap_ms: time between two strikes.

    pairs: share of the strikes that are pairs, 0 to 1. chores: kinds of what the operator does meanwhile.
    bursts: producers sometimes send more at once than a broker's buffers hold.
    """

    name: str
    faults: tuple[str, ...]
    min_gap_ms: int = 300
    max_gap_ms: int = 4_000
    pairs: float = 0.0
    chores: tuple[str, ...] = ()
    bursts: bool = False

    @property
    def is_timed(self) -> bool:
        """Nothing strikes but scripts that say how soon the leadership must move."""
        return all(fault in SICK_LEADERS for fault in self.faults)

    @property
    def delays_requests(self) -> bool:
        """A message may arrive twice, or after its answer was given up."""
        return any(fault in self.faults for fault in ("holding", "duplicating"))

    @classmethod
    def swarm(cls, rng: random.Random) -> Plan:
        faults = tuple(fault for fault in ALL_FAULTS if rng.random() < 0.5)
        return cls(
            name="swarm",
            faults=faults or ("kill-broker",),
            max_gap_ms=rng.choice((1_500, 4_000, 8_000)),
            pairs=rng.choice((0.0, 0.3, 0.6)),
            chores=tuple(chore for chore in CHORES if rng.random() < 0.5),
            bursts=rng.random() < 0.3,
        )

    @classmethod
    def of(cls, profile: str, rng: random.Random) -> Plan:
        """Raises KeyError for an unknown profile."""
        if profile == "swarm":
            return cls.swarm(rng)
        pairs = 1.0 if profile == "pairs" else 0.0
        chores = CHORES if profile in _WITH_CHORES else ()
        return cls(
            name=profile,
            faults=PROFILES[profile],
            max_gap_ms=2_500,
            pairs=pairs,
            chores=chores,
            bursts=profile in _WITH_BURSTS,
        )
