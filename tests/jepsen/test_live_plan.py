"""The plan of a live run: a seed draws the same strikes again, every kind appears, no strike hits more than stated."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from jepsen.live.expectations import most_pause_ms
from jepsen.live.plan import (
    CALM_MS,
    DISK_BLOWS,
    DISK_KINDS,
    HOLD_MS,
    Blow,
    Kind,
    Role,
    Strike,
    Target,
    most_at_once,
    strikes,
    victims,
)

PARTITIONS = 6
seeds = st.integers(0, 2**32)
chosen_kinds = st.lists(st.sampled_from(Kind), min_size=1, unique=True)
node_counts = st.integers(3, 9)


def drawn(seed: int, kinds: list[Kind], nodes: int, rounds: int = 2) -> list[Strike]:
    return list(islice(strikes(seed, kinds, nodes, PARTITIONS), rounds * len(kinds)))


@given(seeds, chosen_kinds, node_counts)
def test_a_seed_draws_the_same_strikes_again(seed: int, kinds: list[Kind], nodes: int) -> None:
    assert drawn(seed, kinds, nodes) == drawn(seed, kinds, nodes)


def test_seeds_draw_different_strikes() -> None:
    assert len({tuple(drawn(seed, list(Kind), 3)) for seed in range(50)}) == 50


@given(seeds, chosen_kinds, node_counts)
def test_each_round_holds_every_kind_once(seed: int, kinds: list[Kind], nodes: int) -> None:
    found = drawn(seed, kinds, nodes)
    for start in (0, len(kinds)):
        of_round = [strike.kind for strike in found[start : start + len(kinds)]]
        assert sorted(of_round, key=list(Kind).index) == sorted(kinds, key=list(Kind).index)
    assert [strike.number for strike in found] == list(range(1, len(found) + 1))


@given(seeds, node_counts)
def test_a_strike_hits_no_more_nodes_than_stated(seed: int, nodes: int) -> None:
    for strike in drawn(seed, list(Kind), nodes):
        assert isinstance(strike.kind, Kind)
        assert 1 <= len(strike.blows) == most_at_once(strike.kind, nodes) <= nodes
        low, high = HOLD_MS[strike.kind]
        assert low <= strike.hold_ms <= high
        assert CALM_MS[0] <= strike.calm_ms <= CALM_MS[1]
        assert (strike.kind in DISK_KINDS) == any(blow in DISK_BLOWS for blow, _ in strike.blows)


@given(
    seeds,
    node_counts,
    st.dictionaries(st.integers(0, PARTITIONS - 1), st.integers(-1, 9)),
    st.integers(-1, 9),
)
def test_the_victims_are_distinct_nodes(seed: int, nodes: int, leaders: dict[int, int], controller: int) -> None:
    ids = list(range(1, nodes + 1))
    for strike in drawn(seed, list(Kind), nodes):
        struck = victims(strike, ids, leaders, controller)
        assert [blow for blow, _ in struck] == [blow for blow, _ in strike.blows]
        assert len({node for _, node in struck}) == len(struck)
        assert all(node in ids for _, node in struck)


def strike_of(*blows: tuple[Blow, Target]) -> Strike:
    return Strike(number=1, kind=Kind.TWO, blows=blows, hold_ms=0, calm_ms=0)


def test_a_role_is_turned_into_its_node() -> None:
    strike = strike_of((Blow.KILL, Target(Role.LEADER, 4)), (Blow.PAUSE, Target(Role.CONTROLLER, 1)))
    assert victims(strike, [1, 2, 3], {4: 3}, 2) == [(Blow.KILL, 3), (Blow.PAUSE, 2)]


def test_a_role_that_is_taken_or_unknown_goes_to_the_next_free_node() -> None:
    strike = strike_of((Blow.KILL, Target(Role.LEADER, 4)), (Blow.KILL, Target(Role.CONTROLLER, 2)))
    assert victims(strike, [1, 2, 3], {4: 3}, 3) == [(Blow.KILL, 3), (Blow.KILL, 1)]
    assert victims(strike, [1, 2, 3], {}, -1) == [(Blow.KILL, 2), (Blow.KILL, 3)]


@given(seeds, node_counts)
def test_every_strike_has_a_pause_that_is_expected(seed: int, nodes: int) -> None:
    for strike in drawn(seed, list(Kind), nodes):
        assert 0 < most_pause_ms(strike) < 30_000
        if strike.kind is Kind.HUNG_DISK:
            assert most_pause_ms(strike) < strike.hold_ms  # waiting for the disk would be too long
