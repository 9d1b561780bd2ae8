"""What strikes, by name, and which faults strike in which order, drawn from a seed. Pure.

A round holds every chosen kind once, in a drawn order. The same seed gives the same strikes. A strike names its victims
by role, because who leads is known only when it strikes; `victims` turns roles into nodes. A scenario has kinds of its
own beyond those that a seed draws (`Step`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from quorumlog.ids import NodeId


class Step(Enum):
    """One kind of strike of a scenario. The value is what the report calls it."""

    EIO = "directory: EIO"
    ENOSPC = "directory: ENOSPC"
    READ_ONLY = "directory: read-only"
    UNMOUNTED = "directory: unmounted"
    CHMOD = "directory: chmod 000"
    REMOVED = "directory: rm -rf"
    CUT = "network: cut off"
    DEAF = "network: hears nobody"
    MUTE = "network: nobody hears it"
    DELAY = "network: delayed"
    DROP = "network: connections dropped"
    UPGRADE = "upgraded"
    LEVELS = "levels raised, proof required"
    MOVE_TARGET = "move: target killed"
    MOVE_SOURCE = "move: source killed"
    MOVE_CONTROLLER = "move: controller killed"


DIRECTORY_STEPS = frozenset(
    {Step.EIO, Step.ENOSPC, Step.READ_ONLY, Step.UNMOUNTED, Step.CHMOD, Step.REMOVED}
)  # fmt: skip
NETWORK_STEPS = frozenset({Step.CUT, Step.DEAF, Step.MUTE, Step.DELAY, Step.DROP})
MOVE_STEPS = frozenset({Step.MOVE_TARGET, Step.MOVE_SOURCE, Step.MOVE_CONTROLLER})


class Kind(Enum):
    """The kinds of strikes, as `--faults` names them."""

    KILL = "kill"
    PAUSE = "pause"
    TWO = "two"  # two nodes at once, each killed or paused
    ALL = "all"  # all nodes at once, killed
    RESTART = "restart"  # clean
    HUNG_DISK = "hung-disk"
    FULL_DISK = "full-disk"
    LOW_DISK = "low-disk"  # less than the reserve is free
    FAILING_DISK = "failing-disk"


class Blow(Enum):
    """What happens to one node."""

    KILL = "killed"
    PAUSE = "paused"
    STOP = "stopped"
    HANG = "disk hangs"
    FILL = "disk full"
    LOW = "disk low"
    FAIL = "disk fails"


DISK_BLOWS = frozenset({Blow.HANG, Blow.FILL, Blow.LOW, Blow.FAIL})


class Role(Enum):
    NODE = "node"
    LEADER = "leader of partition"
    CONTROLLER = "leader of the quorum"


@dataclass(frozen=True, slots=True)
class Target:
    """number: the node's id, or the partition of a leader; also tells which node is taken when the role is unfilled."""

    role: Role
    number: int

    def __str__(self) -> str:
        return self.role.value if self.role is Role.CONTROLLER else f"{self.role.value} {self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """number: counted from 1. blows: at once, each on another node. hold_ms: until they end. calm_ms: before them."""

    number: int
    kind: Kind | Step
    blows: tuple[tuple[Blow | Step, Target], ...]
    hold_ms: int
    calm_ms: int


STALL_MS = 3_000  # log.dir.stall.ms of the nodes: a directory whose call hangs for so long goes offline

HOLD_MS: Mapping[Kind, tuple[int, int]] = {  # inclusive
    Kind.KILL: (500, 4_000),
    Kind.PAUSE: (1_000, 6_000),  # shorter and longer than the broker's session
    Kind.TWO: (1_000, 4_000),
    Kind.ALL: (100, 1_500),
    Kind.RESTART: (0, 500),
    Kind.HUNG_DISK: (STALL_MS + 9_000, STALL_MS + 11_000),  # longer than the pause that is expected
    Kind.FULL_DISK: (4_000, 6_000),
    Kind.LOW_DISK: (2_000, 4_000),
    Kind.FAILING_DISK: (2_000, 4_000),
}
CALM_MS = (500, 2_000)
_BLOW_OF = {
    Kind.KILL: Blow.KILL,
    Kind.PAUSE: Blow.PAUSE,
    Kind.RESTART: Blow.STOP,
    Kind.HUNG_DISK: Blow.HANG,
    Kind.FULL_DISK: Blow.FILL,
    Kind.LOW_DISK: Blow.LOW,
    Kind.FAILING_DISK: Blow.FAIL,
}
_ROLES = (Role.LEADER, Role.LEADER, Role.CONTROLLER, Role.NODE)  # leaders twice as often: their faults pause most


def strikes(seed: int, kinds: Sequence[Kind], nodes: int, partitions: int) -> Iterator[Strike]:
    """Without an end. kinds: distinct, at least one. nodes: with ids from 1."""
    assert kinds and len(kinds) == len(dict.fromkeys(kinds)), kinds
    rng = random.Random(f"live {seed}")
    number = 0
    while True:
        for kind in rng.sample(list(kinds), len(kinds)):
            number += 1
            yield _draw(rng, number, kind, nodes, partitions)


def _draw(rng: random.Random, number: int, kind: Kind, nodes: int, partitions: int) -> Strike:
    return Strike(
        number=number,
        kind=kind,
        blows=tuple(_blows(rng, kind, nodes, partitions)),
        hold_ms=rng.randint(*HOLD_MS[kind]),
        calm_ms=rng.randint(*CALM_MS),
    )


def _blows(rng: random.Random, kind: Kind, nodes: int, partitions: int) -> Iterator[tuple[Blow, Target]]:
    if kind is Kind.ALL:
        yield from ((Blow.KILL, Target(Role.NODE, node)) for node in range(1, nodes + 1))
        return
    for _ in range(most_at_once(kind, nodes)):
        blow = rng.choice((Blow.KILL, Blow.PAUSE)) if kind is Kind.TWO else _BLOW_OF[kind]
        role = rng.choice((Role.LEADER, Role.NODE)) if kind in DISK_KINDS else rng.choice(_ROLES)
        yield blow, Target(role, rng.randrange(partitions) if role is Role.LEADER else rng.randint(1, nodes))


DISK_KINDS = frozenset({Kind.HUNG_DISK, Kind.FULL_DISK, Kind.LOW_DISK, Kind.FAILING_DISK})


def most_at_once(kind: Kind, nodes: int) -> int:
    """How many nodes one strike of this kind hits."""
    return {Kind.ALL: nodes, Kind.TWO: min(2, nodes)}.get(kind, 1)


def victims(
    strike: Strike, nodes: Sequence[NodeId], leaders: Mapping[int, NodeId], controller: NodeId
) -> list[tuple[Blow | Step, NodeId]]:
    """The node of each blow, no node twice. leaders: by partition; controller: of the quorum; -1 or absent: unknown.

    A role that nobody fills, or whose node is taken already, goes to the next free node from `number` on.
    """
    assert len(strike.blows) <= len(nodes)
    found: list[tuple[Blow | Step, NodeId]] = []
    for blow, target in strike.blows:
        taken = [node for _, node in found]
        wanted = {Role.LEADER: leaders.get(target.number, -1), Role.CONTROLLER: controller}.get(
            target.role, target.number
        )
        if wanted not in nodes or wanted in taken:
            start = target.number % len(nodes)
            wanted = next(node for node in (*nodes[start:], *nodes[:start]) if node not in taken)
        found.append((blow, wanted))
    return found
