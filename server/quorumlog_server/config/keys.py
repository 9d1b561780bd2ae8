"""Every key of a node's configuration: Kafka's names and meanings, some defaults of our own (docs/settings.md).

`NODE_KEYS` are the node's own keys, which its parts declare (quorumlog/settings). `TOPIC_SYNONYMS` are the defaults
that a broker sets for its topics (Kafka's `log.*` names). The keys of foreign_keys.py are Kafka's, and have no effect
here. Any other key is an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from quorumlog.configs.broker import TOPIC_SYNONYMS
from quorumlog.configs.live import key_of_listener
from quorumlog.settings.broker import BrokerSettings
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog.settings.connections import ConnectionSettings
from quorumlog.settings.controller import ControllerConfig
from quorumlog.settings.disks import DiskConfig
from quorumlog.settings.key import NodeKey, keys_of
from quorumlog.settings.lifecycle import LifecycleConfig
from quorumlog.settings.metadata_log import SnapshotConfig
from quorumlog.settings.moves import MovesConfig
from quorumlog.settings.node import DirectorySettings, IdentitySettings, ListenerSettings, VoterSettings
from quorumlog.settings.node_auth import NodeAuthSettings
from quorumlog.settings.process import ProcessSettings
from quorumlog.settings.quorum import RaftConfig
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog.settings.requests import HandlerLimits
from quorumlog.settings.rights import RightsConfig
from quorumlog.settings.security import (
    AnonymousSettings,
    DeniedSettings,
    ListenerTlsSettings,
    LoginSettings,
    StrangerLimits,
)
from quorumlog.wire.protocol.limits import WireLimits
from quorumlog_server.config.foreign_keys import IDLE, ONLY, foreign
from quorumlog_server.config.group_keys import GROUP_KEYS
from quorumlog_server.config.listener_security import listener_key
from quorumlog_server.config.properties import ConfigError
from quorumlog_server.config.transaction_keys import TRANSACTION_KEYS

_KEYS = (  # in the order in which DescribeConfigs answers
    *keys_of(IdentitySettings),
    *keys_of(ListenerSettings),
    *keys_of(ListenerTlsSettings),
    *keys_of(LoginSettings),
    *keys_of(StrangerLimits),
    *keys_of(AnonymousSettings),
    *keys_of(DeniedSettings),
    *keys_of(NodeAuthSettings),
    *keys_of(VoterSettings),
    *keys_of(DirectorySettings),
    *keys_of(DiskConfig),
    *keys_of(ReplicationConfig, last="log.dir.free.space.reserve.bytes"),
    *keys_of(SnapshotConfig),
    *keys_of(BrokerSettings),
    *keys_of(ControllerConfig, last="default.replication.factor"),
    *keys_of(LifecycleConfig, last="controlled.shutdown.timeout.ms"),
    *keys_of(RaftConfig),
    *keys_of(ControllerConfig, "metadata.max.idle.interval.ms", "controller.max.batch.records"),
    *keys_of(ReplicationConfig, "broker.max.slice.work", "log.flush.offset.checkpoint.interval.ms"),
    *keys_of(CleanerConfig),
    *keys_of(MovesConfig),
    *keys_of(ReplicationConfig, "log.retention.check.interval.ms", "log.initial.task.delay.ms"),
    *keys_of(LifecycleConfig, "log.dir.failure.timeout.ms"),
    *keys_of(ReplicationConfig, "log.index.check.interval.ms"),
    *keys_of(HandlerLimits),
    *keys_of(WireLimits, last="max.connections"),
    *keys_of(ConnectionSettings),
    *keys_of(WireLimits, "connections.max.idle.ms"),
    *keys_of(ProcessSettings),
    *keys_of(RightsConfig),
    *keys_of(ControllerConfig, "auto.leader.rebalance.enable", "unclean.recovery.timeout.ms"),
    *GROUP_KEYS,
    *TRANSACTION_KEYS,
)

NODE_KEYS: Mapping[str, NodeKey] = {key.name: key for key in _KEYS}

SIZES = ("retention.bytes", "segment.bytes", "segment.index.bytes", "max.message.bytes", "index.interval.bytes")

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
COARSER: Mapping[str, tuple[str, int]] = {  # Kafka's older units, coarsest first: key -> (topic config, ms in one)
    "log.retention.hours": ("retention.ms", _HOUR_MS),
    "log.retention.minutes": ("retention.ms", _MINUTE_MS),
    "log.roll.hours": ("segment.ms", _HOUR_MS),
    "log.roll.jitter.hours": ("segment.jitter.ms", _HOUR_MS),
}


def all_keys() -> list[str]:
    """Every accepted name, sorted."""
    return sorted({*NODE_KEYS, *TOPIC_SYNONYMS, *COARSER, *IDLE, *ONLY})


def check_known(values: Mapping[str, str], where: str) -> None:
    """Raises ConfigError for the first unknown key; it names the nearest known one."""
    known = all_keys()
    for key in values:
        if key not in known and foreign(key) is None and key_of_listener(key) is None and listener_key(key) is None:
            nearest = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else "`quorumlog server config explain` lists the keys"
            raise ConfigError(f"{where}: unknown key {key}; {hint}")
