"""A scripted fault: a directory goes offline, its replica is reassigned away and back, and so lies there twice.

The broker makes the second log in its other directory, because it no longer has the first one's. Then the first
directory comes back, at run time or by a restart, and an operator moves the replica back onto it. The metadata names
the second log: the older one is set aside, the second one serves on, and the move takes its records with it (decision
86). Power is cut at each of these stages, by turns. What must hold is in invariants/placement/directories.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.disk import names_in
from jepsen.sim.settings import DATA, SECOND_DATA
from jepsen.sim.strikes.scripts.aimed import Condition, Script, Target, bring_back, choose_target, let_pass
from jepsen.sim.time.scheduler import NS_PER_MS
from jepsen.sim.truth.mirrors import log_id
from jepsen.sim.truth.places import is_copy, live_name
from quorumlog.errors import ApiError
from quorumlog.ids import NodeId

BEGUN = "second copies begun"
MADE, CAME_BACK, MOVED_BACK = "second copies made", "first directories back", "replicas moved back"
STAGES = ("offline", "given up", "made", "back", "moving", "moved")
_TRIES, _REPLICAS = 20, 3  # one of the replicas goes, and a majority of them must stay
_STEP_MS = 500  # between two requests for the same
_OFFLINE_MS, _MOVED_MS, _MADE_MS, _BACK_MS, _ASIDE_MS = 8_000, 6_000, 6_000, 20_000, 1_000
_SOON_MS = (0, 1, 5, 20, 100, 400)  # after a stage has begun, until power is cut
_DARK_MS = (50, 500, 4_000)  # how long


def cuts_at(stage: str) -> str:
    """What counts the power cuts at a stage."""
    return f"power cuts, {stage}"


def second_copy(cluster: SimCluster, rng: random.Random) -> Script:
    place = _choose(cluster, rng)
    if place is not None:
        yield from place.run()


class _Place:
    """One replica, whose log lies in the second directory of its broker."""

    def __init__(self, cluster: SimCluster, rng: random.Random, target: Target, log: str) -> None:
        self._cluster, self._rng, self._target, self._log = cluster, rng, target, log
        self._victim = target.follower
        self._name = log.partition("@")[0]
        turn = cluster.counts.get(BEGUN, 0) + cluster.scheduler.seed
        self._dark = (*STAGES, None)[turn % (len(STAGES) + 1)]  # the stage at which power is cut

    def run(self) -> Script:
        self._cluster.count(BEGUN)
        try:
            self._lose_the_disk()
            yield self._is_offline, _OFFLINE_MS
            yield from self._power("offline")
            yield from self._reassigned()
            self._cluster.count(MADE)
            yield from self._power("made")
            yield from self._repaired()
            self._cluster.count(CAME_BACK)
            yield from self._older_copy_goes()
            yield from self._moved_back()
            self._cluster.count(MOVED_BACK)
            yield from self._power("moved")
            yield from let_pass(self._cluster, self._rng.randint(200, 1_000))
        finally:
            self._find_the_disk()
            if self._is_offline():
                self._victim.kill()
            bring_back(self._victim)

    # --- the stages ---

    def _lose_the_disk(self) -> None:
        self._cluster.invariants.sick_directories[self._victim.host] = None
        self._victim.disk.mounts.unmount(SECOND_DATA, leaves_a_directory=self._rng.random() < 0.5)
        self._victim.note_struck(SECOND_DATA)

    @property
    def _is_lost(self) -> bool:
        return bool(self._victim.disk.mounts)

    def _find_the_disk(self) -> None:
        """Idempotent."""
        self._victim.disk.mounts.mount(SECOND_DATA)
        self._cluster.invariants.sick_directories.pop(self._victim.host, None)

    def _reassigned(self) -> Script:
        """Away and back. The second log is made as soon as the broker hears of it, and must be filled."""
        own, others = self._victim.node_id, [one for one in self._replicas() if one != self._victim.node_id]
        yield from self._until(lambda: own not in self._replicas(), _MOVED_MS, lambda: self._reassign(others))
        yield from self._power("given up")
        back = [*others, own]
        yield from self._until(lambda: own in self._replicas(), _MOVED_MS, lambda: self._reassign(back))
        if self._dark == "made" and self._rng.random() < 0.5:
            yield self._is_made, _MADE_MS
        else:
            yield lambda: self._is_made() and self._target.in_isr(), _MADE_MS

    def _repaired(self) -> Script:
        self._find_the_disk()
        if self._rng.random() < 0.3:
            self._victim.kill()
            bring_back(self._victim)
        else:
            self._ask()
            yield from self._power("back")
        yield from self._until(lambda: self._serves() and not self._is_offline(), _BACK_MS, self._ask)
        self._victim.struck.discard(SECOND_DATA)  # whatever fails from now on was not struck

    def _older_copy_goes(self) -> Script:
        life, directories = self._victim.life, self._cluster.invariants.directories
        until_ns = self._cluster.scheduler.now_ns + _ASIDE_MS * NS_PER_MS

        def is_over() -> bool:
            is_late = self._cluster.scheduler.now_ns >= until_ns
            return is_late or self._is_disturbed(life) or not directories.older_copies(self._victim)

        yield is_over, _ASIDE_MS + 1_000
        if not self._is_disturbed(life):
            directories.check_copies(self._victim)

    def _moved_back(self) -> Script:
        def move() -> None:
            self._cluster.orders.move(self._target.topic, self._target.index, self._victim.node_id, SECOND_DATA)

        if self._lies_in() == DATA:
            yield from self._until(lambda: any(self._copies()) or self._lies_in() == SECOND_DATA, _MOVED_MS, move)
            yield from self._power("moving")
        yield lambda: self._serves() and self._lies_in() == SECOND_DATA, _BACK_MS

    def _power(self, stage: str) -> Script:
        """Cut it, if it is this one's turn. The disk may be there again when the machine comes up.

        Else nothing is at its path: a process refuses an empty directory, and would stay down.
        """
        if stage != self._dark:
            return
        yield from let_pass(self._cluster, self._rng.choice(_SOON_MS))
        if not self._victim.alive:
            return
        self._cluster.count(cuts_at(stage))
        self._victim.power_cut()
        yield from let_pass(self._cluster, self._rng.choice(_DARK_MS))
        if stage == "made" and self._rng.random() < 0.5:
            self._find_the_disk()
        if self._is_lost:
            self._victim.disk.mounts.unmount(SECOND_DATA, leaves_a_directory=False)
        bring_back(self._victim)
        if self._is_lost:
            self._victim.note_struck(SECOND_DATA)

    # --- what is there ---

    def _reassign(self, replicas: list[NodeId]) -> None:
        self._cluster.orders.reassign(self._target.topic, self._target.index, replicas)

    def _until(self, condition: Condition, limit_ms: int, ask: Callable[[], None]) -> Script:
        """Ask again and again."""
        asked = [-1]

        def holds() -> bool:
            turn = self._cluster.scheduler.now_ns // (_STEP_MS * NS_PER_MS)
            if condition():
                return True
            if asked[0] != turn:
                asked[0] = turn
                ask()
            return False

        yield holds, limit_ms

    def _replicas(self) -> tuple[NodeId, ...]:
        """None once its topic was made anew."""
        topic = self._cluster.image.topic(self._target.topic)
        partition = self._target.partition()
        is_ours = topic is not None and log_id(self._name, topic.id) == self._log
        return partition.replicas if partition is not None and is_ours else ()

    def _is_offline(self) -> bool:
        """Its process runs, without the second directory."""
        lives = () if self._victim.node is None else self._victim.node.lives
        return any(life.path == SECOND_DATA and not life.is_online for life in lives)

    def _is_disturbed(self, life: int) -> bool:
        """Something else has struck the broker, so that the older copy may go later."""
        machine = self._victim
        is_sick = machine.host in self._cluster.invariants.sick_directories or machine.slow_sync_ns > 0
        return machine.life != life or not self._serves() or is_sick or self._is_offline()

    def _serves(self) -> bool:
        """Its process has registered, and is not fenced."""
        machine = self._victim
        broker = self._cluster.image.brokers.get(machine.node_id)
        own = None if machine.node is None else machine.node.incarnation_id
        is_up = machine.alive and not machine.paused
        return is_up and broker is not None and not broker.fenced and broker.incarnation_id == own

    def _lies_in(self) -> str:
        return self._cluster.invariants.mirrors.of(self._victim, self._log).path.rpartition("/")[0]

    def _is_made(self) -> bool:
        return self._cluster.invariants.mirrors.made_last(self._victim, self._log) == f"{DATA}/{self._name}"

    def _copies(self) -> Iterator[str]:
        names = names_in(self._victim.disk, SECOND_DATA)
        return (name for name in names if is_copy(name) and live_name(name) == self._name)

    def _ask(self) -> None:
        """As `quorumlog log-dirs online` does; nobody waits for the answer."""
        node, loop = self._victim.node, self._victim.loop
        if node is None or node.broker is None or loop is None or self._victim.paused or not self._is_offline():
            return
        directory_return = node.broker._directory_return

        async def ask() -> None:
            with suppress(ApiError):
                await directory_return.begin(SECOND_DATA)

        loop.create_task(ask(), name="log-dirs online")


def _choose(cluster: SimCluster, rng: random.Random) -> _Place | None:
    """A follower on a second disk that nothing has struck."""
    for _ in range(_TRIES):
        target = choose_target(cluster, rng)
        topic = None if target is None else cluster.image.topic(target.topic)
        partition = None if target is None else target.partition()
        if target is None or topic is None or partition is None or len(partition.replicas) < _REPLICAS:
            continue
        log = log_id(f"{target.topic}-{target.index}", topic.id)
        is_sick = target.follower.host in cluster.invariants.sick_directories
        path = cluster.invariants.mirrors.of(target.follower, log).path
        if not is_sick and path.startswith(f"{SECOND_DATA}/"):
            return _Place(cluster, rng, target, log)
    return None
