"""Links that are cut, lose, repeat, delay or hold messages; and a probe that takes a living host for dead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.cluster import CLIENT_HOST, READER_HOST
from jepsen.sim.network.link import LinkProfile
from jepsen.sim.network.network import Network
from jepsen.sim.strikes.stage import Stage, Strike, Undo
from jepsen.sim.time.scheduler import NS_PER_MS


def network_strikes(stage: Stage[BaseCluster], links: Links) -> Mapping[str, Strike]:
    rng = stage.rng
    return {
        "isolate": lambda: _isolate(stage),
        "split": lambda: _split(stage),
        "one-way": lambda: _one_way(stage),
        "partial": lambda: _partial(stage),
        "lagging-follower": lambda: _lagging_follower(stage),
        "cut-clients": lambda: _cut_clients(stage),
        "flapping": lambda: _flap(stage),
        "wrong-refusal": lambda: _wrong_refusal(stage),
        "lossy": lambda: links.change(loss=rng.choice((0.01, 0.05, 0.2))),
        "duplicating": lambda: links.change(duplicate=rng.choice((0.05, 0.3))),
        "slow": lambda: links.change(mean_extra_ns=rng.choice((5, 30, 150)) * NS_PER_MS),
        "holding": lambda: links.change(hold=0.02, hold_max_ns=20_000 * NS_PER_MS),
    }


class Links:
    """The profile of all links; several faults may change it at the same time."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._profile = LinkProfile()

    def change(self, **changes: float | int) -> Undo:
        before = {name: getattr(LinkProfile(), name) for name in changes}
        self._set(replace(self._profile, **changes))  # type: ignore[arg-type]
        return lambda: self._set(replace(self._profile, **before))

    def _set(self, profile: LinkProfile) -> None:
        self._profile = profile
        self._network.set_profile(profile)


def _cut(stage: Stage[BaseCluster], pairs: list[tuple[str, str]]) -> Undo:
    """Cut each pair in one direction. If another fault has cut the same link, the first undo heals it."""
    for source, destination in pairs:
        stage.network.cut(source, destination)

    def undo() -> None:
        for source, destination in pairs:
            stage.network.heal(source, destination)

    return undo


def _both_ways(one: str, other: str) -> list[tuple[str, str]]:
    return [(one, other), (other, one)]


def _isolate(stage: Stage[BaseCluster]) -> Undo:
    one = stage.one(stage.all).host
    others = [host for host in stage.cluster.machines if host != one]
    if stage.rng.random() < 0.5:
        others += [CLIENT_HOST, READER_HOST]
    return _cut(stage, [pair for other in others for pair in _both_ways(one, other)])


def _split(stage: Stage[BaseCluster]) -> Undo:
    hosts = list(stage.cluster.machines)
    side = stage.rng.sample(hosts, stage.rng.randint(1, len(hosts) - 1))
    return _cut(stage, [pair for a in side for b in hosts if b not in side for pair in _both_ways(a, b)])


def _one_way(stage: Stage[BaseCluster]) -> Undo:
    source, destination = stage.two(stage.all)
    return _cut(stage, [(source.host, destination.host)])


def _partial(stage: Stage[BaseCluster]) -> Undo:
    one, other = stage.two(stage.all)
    return _cut(stage, _both_ways(one.host, other.host))


def _lagging_follower(stage: Stage[BaseCluster]) -> Undo:
    """One broker gets nothing from another; it leaves the ISR and must catch up."""
    one, other = stage.two(stage.cluster.brokers)
    return _cut(stage, _both_ways(one.host, other.host))


def _cut_clients(stage: Stage[BaseCluster]) -> Undo:
    broker = stage.one(stage.cluster.brokers).host
    return _cut(stage, [*_both_ways(CLIENT_HOST, broker), *_both_ways(READER_HOST, broker)])


def _flap(stage: Stage[BaseCluster]) -> Undo:
    one, other = (machine.host for machine in stage.two(stage.all))
    going, cut = [True], [False]

    def turn() -> None:
        if not going[0]:
            return
        cut[0] = not cut[0]
        if cut[0]:
            stage.network.cut_both(one, other)
        else:
            undo_cut()
        stage.later(stage.rng.randint(50, 1_000), turn)

    def undo_cut() -> None:
        stage.network.heal(one, other)
        stage.network.heal(other, one)

    def undo() -> None:
        going[0] = False
        undo_cut()

    turn()
    return undo


def _wrong_refusal(stage: Stage[BaseCluster]) -> Undo:
    host = stage.one(stage.all).host
    stage.network.wrong_refusals[host] = None
    stage.cluster.invariants.quorum.lied_about[host] = None
    return lambda: stage.network.wrong_refusals.pop(host, None)
