"""Injects faults and undoes them. The seed decides when, where and for how long.

Each strike is a function that injects a fault and returns its undo function. `heal` undoes all faults; after it the
cluster must become healthy.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from jepsen.sim.aimed import fenced_joiner, run_script, stale_proposal
from jepsen.sim.cluster import CLIENT_HOST, SimCluster
from jepsen.sim.failing_disk import failing_disk
from jepsen.sim.link import LinkProfile
from jepsen.sim.machine import Machine
from jepsen.sim.message import Message, Phase, Verdict
from jepsen.sim.plan import SCRIPTED, Plan
from jepsen.sim.rivals import rival_candidates
from jepsen.sim.scheduler import NS_PER_MS
from jepsen.sim.sick_disks import hanging_disk, unreadable_disk
from jepsen.sim.sick_leaders import hung_leader, unreadable_leader
from quorumlog.messages.controller import AlterPartitionRequest
from quorumlog.rpc.calls import BY_REQUEST

Undo = Callable[[], None]
_ALTER_PARTITION = BY_REQUEST[AlterPartitionRequest].method.path
_MAX_AT_ONCE = 4
_DURATIONS_MS = (200, 800, 2_500, 6_000)
_SCRIPTED_MS = (30_000,)  # a script ends itself


class Nemesis:
    """strikes: how often each kind of fault struck."""

    def __init__(self, cluster: SimCluster, plan: Plan) -> None:
        self.strikes: dict[str, int] = {}
        self._cluster, self._plan = cluster, plan
        self._network = cluster.network
        self._rng: random.Random = cluster.scheduler.rng("nemesis")
        self._active: dict[int, Undo] = {}
        self._next = 0
        self._healed = False
        self._profile = LinkProfile()
        self._faults: dict[str, Callable[[], Undo]] = {
            "kill-controller": lambda: self._kill(self._one(cluster.controllers)),
            "kill-leader": lambda: self._kill(cluster.active_controller() or self._one(cluster.controllers)),
            "kill-broker": lambda: self._kill(self._one(cluster.brokers)),
            "power-one": lambda: self._power([self._one(self._all)]),
            "power-all": lambda: self._power(self._all),
            "pause": lambda: self._pause(self._one(self._all)),
            "restart-clean": lambda: self._restart(self._one(self._all)),
            "restart-storm": lambda: self._storm(self._one(self._all)),
            "isolate": self._isolate,
            "split": self._split,
            "one-way": self._one_way,
            "partial": self._partial,
            "cut-clients": self._cut_clients,
            "lossy": lambda: self._links(loss=self._rng.choice((0.01, 0.05, 0.2))),
            "duplicating": lambda: self._links(duplicate=self._rng.choice((0.05, 0.3))),
            "slow": lambda: self._links(mean_extra_ns=self._rng.choice((5, 30, 150)) * NS_PER_MS),
            "holding": lambda: self._links(hold=0.02, hold_max_ns=20_000 * NS_PER_MS),
            "flapping": self._flap,
            "slow-disk": self._slow_disk,
            "failing-disk": lambda: self._sick(failing_disk, self._all),
            "hanging-disk": lambda: self._sick(hanging_disk, self._all),
            "unreadable-disk": lambda: self._sick(unreadable_disk, cluster.brokers),
            "wall-clock": self._wall_clock,
            "wrong-refusal": self._wrong_refusal,
            "hold-alter-partition": self._hold_alter_partition,
            "lagging-follower": self._lagging_follower,
            "fenced-joiner": lambda: run_script(cluster, fenced_joiner(cluster, self._rng)),
            "stale-proposal": lambda: run_script(cluster, stale_proposal(cluster, self._rng)),
            "hung-leader": lambda: run_script(cluster, hung_leader(cluster, self._rng, alone=plan.is_aimed)),
            "unreadable-leader": lambda: run_script(
                cluster, unreadable_leader(cluster, self._rng, alone=plan.is_aimed)
            ),
            "rival-candidates": lambda: run_script(cluster, rival_candidates(cluster, self._rng)),
        }

    @property
    def _all(self) -> list[Machine]:
        return list(self._cluster.machines.values())

    def start(self) -> None:
        if self._plan.faults:
            self._later(self._rng.randint(self._plan.min_gap_ms, self._plan.max_gap_ms), self._strike)

    def heal(self) -> None:
        """End all faults and start all stopped nodes. No fault strikes after this."""
        self._healed = True
        for number in list(self._active):
            self._undo(number)
        self._network.set_profile(LinkProfile())
        self._network.heal_all()
        self._cluster.intercept = None
        self._network.release_held()
        for machine in self._all:
            machine.resume()
            self._up(machine)
        self._keep_up()

    # --- when ---

    def _strike(self) -> None:
        if self._healed:
            return
        if len(self._active) < _MAX_AT_ONCE:
            fault = self._rng.choice(self._plan.faults)
            self.strikes[fault] = self.strikes.get(fault, 0) + 1
            self._cluster.scheduler.record("nemesis", fault)
            self._until_undone(self._faults[fault](), _SCRIPTED_MS if fault in SCRIPTED else _DURATIONS_MS)
        self._later(self._rng.randint(self._plan.min_gap_ms, self._plan.max_gap_ms), self._strike)

    def _until_undone(self, undo: Undo, durations_ms: tuple[int, ...]) -> None:
        number, self._next = self._next, self._next + 1
        self._active[number] = undo
        duration_ms = int(self._rng.choice(durations_ms) * self._rng.uniform(0.5, 1.5))
        self._later(duration_ms, partial(self._undo, number))

    def _undo(self, number: int) -> None:
        self._active.pop(number, _nothing)()

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._cluster.scheduler.call_later(delay_ms * NS_PER_MS, action)

    def _keep_up(self) -> None:
        """After healing, restart every node that still stops (because a controlled shutdown was in progress)."""
        for machine in self._all:
            self._up(machine)
        self._later(500, self._keep_up)

    # --- processes ---

    def _one(self, machines: list[Machine]) -> Machine:
        return self._rng.choice(machines)

    def _up(self, machine: Machine) -> None:
        if not machine.alive:
            machine.start()

    def _kill(self, machine: Machine) -> Undo:
        machine.kill()
        return lambda: self._up(machine)

    def _power(self, machines: list[Machine]) -> Undo:
        for machine in machines:
            machine.power_cut()

        def undo() -> None:
            for machine in machines:
                self._up(machine)

        return undo

    def _pause(self, machine: Machine) -> Undo:
        machine.pause()
        return machine.resume

    def _restart(self, machine: Machine) -> Undo:
        machine.stop()

        def undo() -> None:
            machine.kill()
            self._up(machine)

        return undo

    def _storm(self, machine: Machine) -> Undo:
        going = [True]

        def again() -> None:
            if going[0]:
                machine.kill()
                self._up(machine)
                self._later(self._rng.randint(50, 400), again)

        def undo() -> None:
            going[0] = False
            self._up(machine)

        again()
        return undo

    # --- the network ---

    def _hosts(self) -> list[str]:
        return list(self._cluster.machines)

    def _cut(self, pairs: list[tuple[str, str]]) -> Undo:
        """Cut each pair in one direction. If another fault has cut the same link, the first undo heals it."""
        for source, destination in pairs:
            self._network.cut(source, destination)

        def undo() -> None:
            for source, destination in pairs:
                self._network.heal(source, destination)

        return undo

    def _isolate(self) -> Undo:
        one = self._rng.choice(self._hosts())
        others = [host for host in self._hosts() if host != one]
        if self._rng.random() < 0.5:
            others.append(CLIENT_HOST)
        return self._cut([pair for other in others for pair in ((one, other), (other, one))])

    def _split(self) -> Undo:
        hosts = self._hosts()
        side = self._rng.sample(hosts, self._rng.randint(1, len(hosts) - 1))
        return self._cut([pair for a in side for b in hosts if b not in side for pair in ((a, b), (b, a))])

    def _one_way(self) -> Undo:
        source, destination = self._rng.sample(self._hosts(), 2)
        return self._cut([(source, destination)])

    def _partial(self) -> Undo:
        one, other = self._rng.sample(self._hosts(), 2)
        return self._cut([(one, other), (other, one)])

    def _cut_clients(self) -> Undo:
        one = self._one(self._cluster.brokers).host
        return self._cut([(CLIENT_HOST, one), (one, CLIENT_HOST)])

    def _links(self, **changes: float | int) -> Undo:
        before = {name: getattr(LinkProfile(), name) for name in changes}
        self._set_profile(replace(self._profile, **changes))  # type: ignore[arg-type]
        return lambda: self._set_profile(replace(self._profile, **before))

    def _set_profile(self, profile: LinkProfile) -> None:
        self._profile = profile
        self._network.set_profile(profile)

    def _flap(self) -> Undo:
        one, other = self._rng.sample(self._hosts(), 2)
        going, cut = [True], [False]

        def turn() -> None:
            if not going[0]:
                return
            cut[0] = not cut[0]
            if cut[0]:
                self._network.cut_both(one, other)
            else:
                undo_cut()
            self._later(self._rng.randint(50, 1_000), turn)

        def undo_cut() -> None:
            self._network.heal(one, other)
            self._network.heal(other, one)

        def undo() -> None:
            going[0] = False
            undo_cut()

        turn()
        return undo

    # --- disks and clocks ---

    def _slow_disk(self) -> Undo:
        machine = self._one(self._all)
        machine.slow_sync_ns = self._rng.choice((5, 50, 400)) * NS_PER_MS

        def undo() -> None:
            machine.slow_sync_ns = 0

        return undo

    def _sick(self, strike: Callable[[SimCluster, Machine, random.Random], Undo], machines: list[Machine]) -> Undo:
        sound = [machine for machine in machines if machine.host not in self._cluster.invariants.crashes_expected]
        return strike(self._cluster, self._one(sound), self._rng) if sound else _nothing

    def _wall_clock(self) -> Undo:
        machine = self._one(self._all)
        machine.clock.wall_skew_ms = self._rng.choice((-7_200_000, -1_000, 1_000, 3_000_000))

        def undo() -> None:
            machine.clock.wall_skew_ms = 0

        return undo

    def _wrong_refusal(self) -> Undo:
        host = self._rng.choice(self._hosts())
        self._network.wrong_refusals[host] = None
        self._cluster.invariants.quorum.lied_about[host] = None
        return lambda: self._network.wrong_refusals.pop(host, None)

    # --- aimed at replication ---

    def _hold_alter_partition(self) -> Undo:
        """AlterPartition requests arrive late (N12); the joining replica may die meanwhile."""

        def intercept(message: Message) -> Verdict:
            if message.path == _ALTER_PARTITION and message.phase is Phase.REQUEST and self._rng.random() < 0.5:
                return Verdict.HOLD
            return Verdict.PASS

        self._cluster.intercept = intercept

        def undo() -> None:
            self._cluster.intercept = None
            self._network.release_held()

        return undo

    def _lagging_follower(self) -> Undo:
        """One broker gets nothing from another; it leaves the ISR and must catch up."""
        one, other = (machine.host for machine in self._rng.sample(self._cluster.brokers, 2))
        return self._cut([(one, other), (other, one)])


def _nothing() -> None:
    return None
