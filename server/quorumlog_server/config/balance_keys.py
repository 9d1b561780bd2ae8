"""Keys of the balance of leaders and of unclean recovery: Kafka's names and defaults."""

from __future__ import annotations

from quorumlog.settings.key import MAX_INT, NodeKey, number, parse_bool

BALANCE_KEYS = (
    NodeKey(
        name="auto.leader.rebalance.enable",
        parse=parse_bool,
        default="true",
        doc="The controller gives leaderships back to the preferred replicas, which are the first ones.",
    ),
    number(
        "leader.imbalance.check.interval.seconds", 300, 1, "Time between two such passes over all partitions.", MAX_INT
    ),
    number(
        "leader.imbalance.per.broker.percentage",
        10,
        0,
        "Most of a broker's preferred leaderships that may be elsewhere, in percent, before it gets them back.",
        100,
    ),
    number(
        "unclean.recovery.timeout.ms",
        300_000,
        0,
        "With `unclean.recovery.strategy=Balanced`: longest wait for the last known leader.",
        MAX_INT,
    ),
)
