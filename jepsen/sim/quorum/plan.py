"""The plan of one run as data: which nodes, which strikes at which time, how many operations. A plan can be cut.

Everything is drawn from the seed at once, and the plan of a shorter run is the beginning of a longer one's. What a
strike chooses itself (its victim, a rate) comes from a source of its own, named by its number; so a plan with some
strikes taken out is the same run but for them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jepsen.sim.blow import Blow
from jepsen.sim.cuts import Cuts
from jepsen.sim.quorum.layout import Layout

CUT_OFF, DAMAGED, LOST, UPGRADE = "cut-off-leader", "damaged-snapshot", "lost-snapshot", "upgrade"
WIPED, ROTTEN = "wiped-disk", "rotten-snapshot"
PROCESS = ("kill", "pause", "power-one", "power-all", "restart-clean", "restart-storm", "dies-inside-a-call")
NETWORK = ("isolate", "split", "one-way", "partial", "flapping", "lossy", "duplicating", "slow", "holding")
DISKS = ("slow-disk", "failing-disk", "hanging-disk")
OTHER = ("wall-clock", "wrong-refusal")
STRIKES = (*PROCESS, *NETWORK, *DISKS, *OTHER, CUT_OFF, DAMAGED, LOST, ROTTEN)
OF_ONE = (  # these may be aimed at the quorum's leader
    "kill",
    "pause",
    "power-one",
    "restart-clean",
    "restart-storm",
    "dies-inside-a-call",
    "isolate",
    "one-way",
    "partial",
    "flapping",
    "slow-disk",
    "failing-disk",
    "hanging-disk",
)
OF_TWO = ("split", "one-way", "partial", "flapping", CUT_OFF)  # need two nodes

_OMITTED = 0.5  # of the kinds, in each run (swarm testing)
_AT_LEADER = 0.4  # of the strikes that may
_CALM_EVERY_MS, _CALM_SHARE = 5_000, 0.25  # periods without a new strike
_LASTS_MS = (100, 500, 2_000, 5_000)
_OPERATIONS_PER_S = (3.0, 6.0)
_RECONFIGURED = 0.4  # of the quorums change their voters
_OLDER = 0.25  # of the quorums begin with older software
_VOTERS = (1, 2, 3, 3, 3, 4, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumPlan:
    """operations: most that the clients begin, all together. clients: how many call at a time."""

    layout: Layout
    blows: tuple[Blow, ...]
    clients: int
    operations: int
    operations_per_s: float
    name: str = "quorum"

    @property
    def faults(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(blow.kind for blow in self.blows))

    def cut(self, cuts: Cuts) -> QuorumPlan:
        layout = self.layout
        if cuts.voters is not None:
            layout = replace(layout, voters=cuts.voters, combined=min(layout.combined, cuts.voters))
        if cuts.brokers is not None:
            combined = min(layout.combined, cuts.brokers)
            layout = replace(layout, brokers=cuts.brokers - combined, combined=combined)
        kept = self.blows if cuts.blows is None else tuple(blow for blow in self.blows if blow.number in cuts.blows)
        operations = self.operations if cuts.operations is None else min(self.operations, cuts.operations)
        return replace(self, layout=layout, blows=kept, operations=operations)


def drawn(rng: random.Random, seconds: int) -> QuorumPlan:
    """seconds: virtual, of the phase with strikes."""
    per_s, clients = rng.uniform(*_OPERATIONS_PER_S), rng.randint(2, 4)
    layout = _layout(rng)
    return QuorumPlan(
        layout=layout,
        blows=tuple(_blows(rng, seconds * 1_000, _always(layout))),
        clients=clients,
        operations=int(seconds * per_s),
        operations_per_s=per_s,
    )


def _always(layout: Layout) -> tuple[str, ...]:
    """Kinds that are never omitted: few quorums can have them."""
    return (*((UPGRADE, UPGRADE) if layout.begins_older else ()), *((WIPED, WIPED) if layout.changes_voters else ()))


def _layout(rng: random.Random) -> Layout:
    voters = rng.choice(_VOTERS)
    is_combined = rng.random() < 0.3
    settings = {
        "metadata.log.max.record.bytes.between.snapshots": str(rng.choice((1_500, 6_000, 6_000, 20 << 20))),
        "metadata.log.max.snapshot.interval.ms": str(rng.choice((0, 2_000, 10_000))),
        "metadata.max.retention.bytes": str(rng.choice((2_000, 10_000, 100 << 20))),
        "metadata.max.retention.ms": str(rng.choice((5_000, 20_000, -1))),
        "metadata.retention.check.interval.ms": str(rng.choice((500, 3_000))),
        "controller.quorum.fetch.snapshot.max.bytes": str(rng.choice((150, 2_000, 1 << 20))),
        "metadata.log.segment.bytes": str(rng.choice((1_024, 3_000, 64 << 20))),
        "log.flush.offset.checkpoint.interval.ms": str(rng.choice((1_000, 5_000, 60_000))),
        "controller.quorum.election.timeout.ms": str(rng.choice((300, 500, 1_000))),
        "controller.quorum.fetch.timeout.ms": str(rng.choice((500, 1_000, 1_500))),
    }
    combined = min(voters, 3) if is_combined else 0
    return Layout(
        voters=voters,
        combined=combined,
        brokers=0 if is_combined else rng.randint(0, 3),
        begins_older=rng.random() < _OLDER,
        changes_voters=voters > 1 and rng.random() < _RECONFIGURED,
        settings=settings,
    )


def _blows(rng: random.Random, length_ms: int, always: Sequence[str]) -> list[Blow]:
    """always: kinds that are never omitted."""
    kinds = [*always, *([kind for kind in STRIKES if rng.random() >= _OMITTED] or ["kill"])]
    longest_gap_ms = rng.choice((1_000, 2_500, 5_000))
    calm_rng, rng = random.Random(rng.getrandbits(64)), random.Random(rng.getrandbits(64))
    calm = [calm_rng.random() < _CALM_SHARE for _ in range(length_ms // _CALM_EVERY_MS + 1)]
    blows: list[Blow] = []
    at_ms = 0
    while (at_ms := at_ms + rng.randint(100, longest_gap_ms)) < length_ms:
        blow = _blow(rng, kinds, len(blows), at_ms)
        if not calm[at_ms // _CALM_EVERY_MS]:
            blows.append(blow)
    return blows


def _blow(rng: random.Random, kinds: Sequence[str], number: int, at_ms: int) -> Blow:
    kind = rng.choice(kinds)
    lasts_ms = int(rng.choice(_LASTS_MS) * rng.uniform(0.5, 1.5))
    at_leader = rng.random() < _AT_LEADER and kind in OF_ONE
    return Blow(number=number, kind=kind, at_ms=at_ms, lasts_ms=lasts_ms, at_leader=at_leader)
