"""The replication throttle: its rate over any time, whom it holds back, and a fetcher that waits without turning."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.configs.throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    NO_RATE,
    names_replica,
)
from quorumlog.configs.topic import validate
from quorumlog.errors import ApiError
from quorumlog_broker.replicas.throttle import BURST_MS, DEBT_MS, LONGEST_DELAY_MS, PORTION_MS, RateQuota, Throttles
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE
from tests.parts import few

TOPIC = b"t" * 16
KEY = (TOPIC, 3)


class Clock:
    def __init__(self) -> None:
        self.at_ms = 1_000

    def now_ms(self) -> int:
        return self.at_ms


@settings(max_examples=few(40))
@given(st.integers(1, 2_000_000), st.lists(st.integers(5_000, 1_000_000), min_size=1, max_size=5), st.integers(2, 20))
def test_a_greedy_taker_gets_the_rate_and_not_more(rate: int, batches: list[int], seconds: int) -> None:
    """batches: their sizes, again and again; a taker takes whole ones, and at least one."""
    quota, now_ms, taken, looks, sizes = RateQuota(), 0, 0, 0, list(batches)
    quota.set_rate(rate, now_ms)
    end_ms = seconds * 1_000
    while now_ms < end_ms:
        looks += 1
        left, got = quota.left_bytes(now_ms), 0
        assert (quota.delay_ms(now_ms) == 0) == (left > 0)
        if left:
            while got == 0 or got + sizes[0] <= left:
                got += sizes[0]
                sizes.append(sizes.pop(0))
            quota.spend(got, now_ms)
            taken += got
        now_ms += max(1, quota.delay_ms(now_ms))
    allowed = rate * seconds
    assert taken <= allowed + max(batches), "a rate is kept from its first second"
    assert taken >= 0.9 * allowed - max(batches) - rate * PORTION_MS / 1000
    assert looks <= seconds * 1_000 // PORTION_MS * 2 + 2 + taken // max(1, rate * PORTION_MS // 1000), (
        "it does not spin"
    )


def test_what_is_not_used_is_kept_for_a_burst_only() -> None:
    quota = RateQuota()
    quota.set_rate(1_000, 0)
    assert quota.left_bytes(60_000) == BURST_MS
    quota.spend(5_000, 60_000)
    assert quota.delay_ms(60_000) == LONGEST_DELAY_MS, "so that a higher rate is noticed soon"
    quota.set_rate(1_000_000, 60_500)
    assert quota.delay_ms(60_500) == PORTION_MS + 4, "what was overdrawn stays"
    quota.set_rate(NO_RATE, 61_000)
    assert not quota.is_on
    quota.set_rate(0, 62_000)
    assert (quota.left_bytes(99_000), quota.delay_ms(99_000)) == (0, LONGEST_DELAY_MS)


def test_what_may_not_wait_makes_no_debt_of_hours() -> None:
    """A minute of traffic at a hundred times the rate holds the others back for ten seconds, not for hours."""
    quota = RateQuota()
    quota.set_rate(1_000, 0)
    for at_ms in range(0, 60_000, 100):
        quota.spend_unasked(10_000, at_ms)
    assert quota.left_bytes(59_900 + DEBT_MS) == 0
    assert quota.delay_ms(59_900 + DEBT_MS) == PORTION_MS + 1
    quota.spend(50_000, 80_000)
    quota.spend_unasked(10_000, 80_000)
    assert quota.left_bytes(80_000 + 49_000) == 0, "what was overdrawn by a batch is paid for in whole"
    assert quota.left_bytes(80_000 + 49_100) > 0


NAMED = [
    ("*", 3, 1, True),
    ("3:1", 3, 1, True),
    ("0:2, 3:1", 3, 1, True),
    ("3:2", 3, 1, False),
    ("1:3", 3, 1, False),
    ("", 3, 1, False),
    ("3:1,*", 9, 9, True),
]


@pytest.mark.parametrize(("text", "index", "node", "named"), NAMED)
def test_which_replicas_are_named(text: str, index: int, node: int, named: bool) -> None:
    validate(LEADER_REPLICAS, text)
    assert names_replica(text, index, node) is named


@pytest.mark.parametrize("text", ["1", "a:1", "1:", "1:2:3", "**", "-1:2", "1:2,x"])
@pytest.mark.parametrize("name", [LEADER_REPLICAS, FOLLOWER_REPLICAS])
def test_another_list_is_refused(name: str, text: str) -> None:
    with pytest.raises(ApiError):
        validate(name, text)


def throttles(isr: tuple[int, ...] = (1,), **configs: Any) -> tuple[Throttles, Clock]:
    """Of broker 1; topic `t` has the replica 3."""
    own, everyone, topic = (configs.get(name, {}) for name in ("own", "everyone", "topic"))
    image = SimpleNamespace(
        configs={
            (BROKER_RESOURCE, "1"): own,
            (BROKER_RESOURCE, CLUSTER_DEFAULT): everyone,
            (TOPIC_RESOURCE, "t"): topic,
        },
        topics={TOPIC: SimpleNamespace(name="t")},
        partition=lambda _topic, _index: SimpleNamespace(isr=isr),
    )
    clock = Clock()
    registry: Any = SimpleNamespace(image=image)
    fake: Any = clock
    found = Throttles.of(1, registry, fake)
    found.settings_changed()
    return found, clock


ON: dict[str, Any] = {
    "own": {LEADER_RATE: "1000", FOLLOWER_RATE: "2000"},
    "topic": {LEADER_REPLICAS: "3:1", FOLLOWER_REPLICAS: "*"},
}


def test_a_replica_that_is_in_sync_is_not_held_back_and_counts() -> None:
    found, clock = throttles(isr=(1, 2), **ON)
    leader = found.leader
    assert (leader.held_back_ms(KEY, 2), leader.held_back_ms(KEY, 4)) == (0, PORTION_MS + 1)
    clock.at_ms += 500
    assert (leader.left_bytes(KEY, 4, 10_000), leader.left_bytes(KEY, 2, 10_000)) == (500, 10_000)
    assert leader.left_bytes(KEY, 4, 10) == 10
    leader.spend(KEY, 4, 600)
    assert leader.held_back_ms(KEY, 4) == 201
    assert leader.held_back_ms((TOPIC, 4), 4) == 0, "this partition is not named"
    assert found.follower.counts((TOPIC, 4))


def test_without_a_rate_or_without_replicas_nothing_counts() -> None:
    for configs in ({"topic": ON["topic"]}, {"own": ON["own"]}):
        found, _ = throttles(**configs)
        assert not found.leader.counts(KEY)
        assert found.leader.held_back_ms(KEY, 4) == 0
    found, _ = throttles(**ON)
    assert not found.leader.counts((b"u" * 16, 3)), "a topic that is not known"


def test_the_rate_of_the_broker_wins_over_that_of_all_brokers() -> None:
    found, clock = throttles(
        everyone={LEADER_RATE: "5000", FOLLOWER_RATE: "5000"}, own={LEADER_RATE: "1000"}, topic=ON["topic"]
    )
    clock.at_ms += 100
    assert found.leader.left_bytes(KEY, 4, 10_000) == 100
    assert found.follower.left_bytes(KEY, 4, 10_000) == 500
