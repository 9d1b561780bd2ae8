"""Settings of throttles: rates of brokers, and which replicas of a topic they concern (KIP-73, KIP-113).

Rates are changed while brokers run, for one broker or for all (a `broker` resource of IncrementalAlterConfigs). Those
of replication have no place in a broker's file, as in Kafka; that of moves between log directories has. Replicas are
named by a setting of their topic: `*`, or words of the form PARTITION:BROKER.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from quorumlog.configs.topic import EVERY_REPLICA, FOLLOWER_THROTTLED_REPLICAS, LEADER_THROTTLED_REPLICAS
from quorumlog.ids import NodeId
from quorumlog.settings.changeable import changeable
from quorumlog.settings.config_key import MAX_LONG, ConfigKey, Kind, words
from quorumlog.settings.key import key_of
from quorumlog.settings.moves import MovesConfig

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS, FOLLOWER_REPLICAS = LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS
NO_RATE = MAX_LONG  # nothing is throttled

_REPLICATION = (
    ConfigKey(
        name=LEADER_RATE, kind=Kind.WHOLE, default=str(NO_RATE), minimum=0, maximum=MAX_LONG,
        doc="Bytes per second that this broker sends to followers of throttled replicas that are not in sync.",
    ),
    ConfigKey(
        name=FOLLOWER_RATE, kind=Kind.WHOLE, default=str(NO_RATE), minimum=0, maximum=MAX_LONG,
        doc="Bytes per second that this broker fetches for its throttled replicas that are not in sync.",
    ),
)  # fmt: skip
_MOVES = changeable(key_of(MovesConfig, MOVE_RATE))
THROTTLE_SETTINGS: Mapping[str, ConfigKey] = {key.name: key for key in (*_REPLICATION, _MOVES)}
NOT_IN_A_FILE: Mapping[str, ConfigKey] = {key.name: key for key in _REPLICATION}


@lru_cache(maxsize=1_024)
def _on_broker(text: str, node_id: NodeId) -> frozenset[int] | None:
    """The partitions whose replica on this broker is named. None: all of them."""
    named = words(text)
    if EVERY_REPLICA in named:
        return None
    pairs = (word.split(":") for word in named)
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == node_id)


def names_replica(text: str, index: int, node_id: NodeId) -> bool:
    """The setting names this partition's replica on this broker. text: as the controller has accepted it."""
    found = _on_broker(text, node_id)
    return found is None or index in found
