"""Settings of a broker that can be changed while it runs, beside those of its cleaner, directories and throttles.

Stored under the names of a broker's file (`quorumlog/settings`), for one broker or for all. `IDLE` are
taken because Kafka takes them at run time and its tools set them: nothing here reads them, nor their keys in a file
(`quorumlog_server/config/foreign_keys.py`). Source: Kafka's `DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from quorumlog.settings.changeable import changeable
from quorumlog.settings.config_key import MAX_LONG, ConfigKey, Kind, words
from quorumlog.settings.connections import (
    CONNECTIONS,
    CONNECTIONS_OF_ADDRESS,
    CREATION_RATE,
    OF_LISTENER,
    OVERRIDES,
    ConnectionSettings,
)
from quorumlog.settings.disks import RECOVERY_THREADS, DiskConfig
from quorumlog.settings.groups import ConsumerGroupConfig
from quorumlog.settings.key import key_of
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog.settings.requests import SLOW_REQUEST, HandlerLimits
from quorumlog.settings.transactions import VerificationConfig
from quorumlog.settings.types import MAX_INT

ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"
PRODUCER_EXPIRATION = "producer.id.expiration.ms"
VERIFICATION = "transaction.partition.verification.enable"
_OF_LISTENER = re.compile(r"listener\.name\.[a-z0-9_.-]+\.(max\.connections|max\.connection\.creation\.rate)")
_DOCS = {
    CONNECTIONS: "Connections to this listener, beside `max.connections`; a further one is closed at once.",
    CREATION_RATE: f"Connections that this listener lets in a second, beside `{CREATION_RATE}`; others wait.",
}

_IN_FORCE = (
    changeable(
        key_of(ConsumerGroupConfig, ASSIGNMENT_INTERVAL),
        "Least time between two assignments of a group that has no such time of its own.",
    ),
    changeable(OF_LISTENER),
    changeable(key_of(ConnectionSettings, CONNECTIONS_OF_ADDRESS)),
    changeable(key_of(ConnectionSettings, CREATION_RATE)),
    OVERRIDES,
    changeable(key_of(DiskConfig, RECOVERY_THREADS)),
    changeable(key_of(ReplicationConfig, PRODUCER_EXPIRATION)),
    changeable(key_of(HandlerLimits, SLOW_REQUEST)),
    changeable(
        key_of(VerificationConfig, VERIFICATION),
        "A leader asks the coordinator before it begins a transaction for a producer that adds its partitions itself.",
    ),
)


class ListenersToo(Mapping[str, ConfigKey]):
    """These keys, and those of a listener (`key_of_listener`) of every name, which are found and not listed."""

    def __init__(self, keys: Mapping[str, ConfigKey]) -> None:
        self._keys = keys

    def __getitem__(self, name: str) -> ConfigKey:
        found = self._keys.get(name) or key_of_listener(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def connections_of_listener(name: str) -> str:
    """The key of a listener's own maximum. Source: Kafka's `ListenerName.configPrefix`, which is lower case."""
    return f"listener.name.{name.lower()}.{CONNECTIONS}"


def creation_rate_of_listener(name: str) -> str:
    """Likewise that of how many it lets in a second."""
    return f"listener.name.{name.lower()}.{CREATION_RATE}"


@lru_cache(maxsize=64)
def key_of_listener(name: str) -> ConfigKey | None:
    """None: this is no key of `connections_of_listener` or `creation_rate_of_listener`."""
    found = _OF_LISTENER.fullmatch(name)
    if found is None:
        return None
    return ConfigKey(
        name=name, kind=Kind.WHOLE, default=str(MAX_INT), minimum=1, maximum=MAX_INT,
        doc=_DOCS[found[1]],
    )  # fmt: skip


IN_FORCE: Mapping[str, ConfigKey] = ListenersToo({key.name: key for key in _IN_FORCE})


def _idle(name: str, kind: Kind, default: str, minimum: int = 0, maximum: int = MAX_INT) -> ConfigKey:
    return ConfigKey(name=name, kind=kind, default=default, minimum=minimum, maximum=maximum, doc="No effect.")


_IDLE = (
    _idle("background.threads", Kind.WHOLE, "10", 1),
    _idle("follower.fetch.last.tiered.offset.enable", Kind.BOOLEAN, "false"),
    _idle("group.coordinator.cached.buffer.max.bytes", Kind.WHOLE, "1048588", 1),
    _idle("log.local.retention.bytes", Kind.WHOLE, "-2", -2, MAX_LONG),
    _idle("log.local.retention.ms", Kind.WHOLE, "-2", -2, MAX_LONG),
    _idle("metric.reporters", Kind.LIST, ""),
    _idle("num.io.threads", Kind.WHOLE, "8", 1),
    _idle("num.network.threads", Kind.WHOLE, "3", 1),
    _idle("num.replica.fetchers", Kind.WHOLE, "1", 1),
    _idle("principal.builder.class", Kind.LIST, ""),
    _idle("remote.fetch.max.wait.ms", Kind.WHOLE, "500", 1),
    _idle("remote.list.offsets.request.timeout.ms", Kind.WHOLE, "30000", 1),
)
IDLE: Mapping[str, ConfigKey] = {key.name: key for key in _IDLE}


@lru_cache(maxsize=64)
def connections_by_host(text: str) -> Mapping[str, int]:
    """Of a value of ADDRESSES that is allowed. An IPv6 address has colons of its own."""
    return {host: int(count) for host, _, count in (word.rpartition(":") for word in words(text))}
