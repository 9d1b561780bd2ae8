"""Settings of a broker that can be changed while it runs, beside those of its cleaner, directories and throttles.

Stored under the names of a broker's file (`quorumlog_cli/server/keys.py`), for one broker or for all. `IDLE` are taken
because Kafka takes them at run time and its tools set them: nothing here reads them, nor their keys in a file
(`quorumlog_cli/server/foreign_keys.py`). Source: Kafka's `DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.topic_config import MAX_INT, MAX_LONG, ConfigKey, Kind

ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"
PRODUCER_EXPIRATION = "producer.id.expiration.ms"
VERIFICATION = "transaction.partition.verification.enable"

_IN_FORCE = (
    ConfigKey(
        name=ASSIGNMENT_INTERVAL, kind=Kind.WHOLE, default="1000", maximum=MAX_INT,
        doc="Least time between two assignments of a group that has no such time of its own.",
    ),
    ConfigKey(
        name=PRODUCER_EXPIRATION, kind=Kind.WHOLE, default="86400000", minimum=1, maximum=MAX_INT,
        doc="A partition forgets a producer that is silent for this long.",
    ),
    ConfigKey(
        name=VERIFICATION, kind=Kind.BOOLEAN, default="true",
        doc="A leader asks the coordinator before it begins a transaction for a producer that adds its partitions "
        "itself.",
    ),
)  # fmt: skip
IN_FORCE: Mapping[str, ConfigKey] = {key.name: key for key in _IN_FORCE}


def _idle(name: str, kind: Kind, default: str, minimum: int = 0, maximum: int = MAX_INT) -> ConfigKey:
    return ConfigKey(name=name, kind=kind, default=default, minimum=minimum, maximum=maximum, doc="No effect.")


_IDLE = (
    _idle("background.threads", Kind.WHOLE, "10", 1),
    _idle("follower.fetch.last.tiered.offset.enable", Kind.BOOLEAN, "false"),
    _idle("group.coordinator.cached.buffer.max.bytes", Kind.WHOLE, "1048588", 1),
    _idle("log.local.retention.bytes", Kind.WHOLE, "-2", -2, MAX_LONG),
    _idle("log.local.retention.ms", Kind.WHOLE, "-2", -2, MAX_LONG),
    _idle("max.connection.creation.rate", Kind.WHOLE, str(MAX_INT)),
    _idle("max.connections.per.ip", Kind.WHOLE, str(MAX_INT)),
    _idle("max.connections.per.ip.overrides", Kind.LIST, ""),
    _idle("metric.reporters", Kind.LIST, ""),
    _idle("num.io.threads", Kind.WHOLE, "8", 1),
    _idle("num.network.threads", Kind.WHOLE, "3", 1),
    _idle("num.replica.fetchers", Kind.WHOLE, "1", 1),
    _idle("principal.builder.class", Kind.LIST, ""),
    _idle("remote.fetch.max.wait.ms", Kind.WHOLE, "500", 1),
    _idle("remote.list.offsets.request.timeout.ms", Kind.WHOLE, "30000", 1),
)
IDLE: Mapping[str, ConfigKey] = {key.name: key for key in _IDLE}
