"""Which settings the two sides describe in different words, by name, so that any other difference is seen.

Both run with the same file, but for what each must have of its own: addresses, directories, how long a quorum waits.
"""

from __future__ import annotations

import re

from differential.compare import ABSENT, Difference
from quorumlog_server.config.foreign_keys import foreign

# Of a broker. Kafka does not have them, or does not tell of them.
OURS = frozenset((
    "authentication.timeout.ms", "max.unauthenticated.connections", "quorumlog.inter.node.auth",
    "sasl.oauthbearer.allowed.urls", "ssl.verify.strict",
    "broker.max.slice.work", "cluster.secret.in.clear", "console.client.config", "console.listener",
    "controlled.shutdown.timeout.ms", "debug.cut.links.file", "events.max", "metrics.detail", "slow.request.ms",
    "controller.max.batch.records", "controller.max.slice.work", "controller.quorum.voters.moved",
    "follower.replication.throttled.rate",
    "group.consumer.regex.refresh.interval.ms", "group.coordinator.max.groups", "group.coordinator.max.offsets",
    "group.coordinator.max.waiting.calls", "joint.expiration.ms", "joint.max.groups", "joint.max.timeout.ms",
    "leader.imbalance.per.broker.percentage",
    "leader.replication.throttled.rate", "log.dir.stall.ms", "log.durability", "log.format", "log.index.bytes.max",
    "log.index.check.interval.ms", "log.index.check.max.bytes.per.second", "log.level", "log.tail.bytes",
    "metadata.retention.check.interval.ms", "metrics.host", "metrics.port", "metrics.security.protocol",
    "paths.relative.to",
    "producer.id.expiration.check.interval.ms", "queued.max.internal.request.bytes",
    "quorumlog.authorizer.report.only", "record.validation",
    "replica.alter.log.dirs.io.max.bytes.per.second", "replication.listener.name", "rpc.reflection",
    "transaction.coordinator.max.ids", "transaction.coordinator.max.pending.markers",
    "transaction.coordinator.max.waiting.calls", "transaction.partition.verification.max.waiting",
    "unclean.recovery.timeout.ms",
))  # fmt: skip
# Of Kafka's authorizer, which reads them itself: a broker of Kafka knows neither, and hides the value.
OF_AUTHORIZER = frozenset(("super.users", "allow.everyone.if.no.acl.found"))
# Kafka's older names for settings that we describe by the newer one, from which their values come here.
OLDER_NAMES = frozenset((
    "log.retention.hours", "log.retention.minutes", "log.roll.hours", "log.roll.jitter.hours",
))  # fmt: skip
# Other values: addresses and directories of each side's own file, and defaults of ours (docs/settings.md).
OTHER_VALUES = frozenset((
    "broker.heartbeat.interval.ms", "broker.id", "broker.session.timeout.ms", "controller.listener.names",
    "controller.quorum.election.timeout.ms", "controller.quorum.fetch.timeout.ms", "controller.quorum.voters",
    "group.coordinator.rebalance.protocols", "inter.broker.listener.name", "listener.security.protocol.map",
    "sasl.enabled.mechanisms", "ssl.keystore.type", "ssl.truststore.type",
    "listeners", "log.dir", "log.dirs", "log.flush.interval.ms", "log.initial.task.delay.ms", "log.roll.jitter.ms",
    "log.roll.ms", "max.connections", "metadata.log.segment.bytes", "process.roles", "queued.max.request.bytes",
))  # fmt: skip
# What Kafka changes while it runs, and we at a start.
AT_A_START = frozenset((
    "config.providers", "listener.security.protocol.map", "listeners", "sasl.enabled.mechanisms", "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols", "ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key",
    "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.certificates",
    "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type",
))  # fmt: skip
# Values of the file that are in the metadata here (decision 85), or come from an older name.
OTHER_SYNONYMS = OTHER_VALUES | {"min.insync.replicas", "log.retention.ms"}
# Of a topic: the broker's setting that it would take its value from has another name, or there is none.
TOPICS_SYNONYMS = frozenset((
    "flush.ms", "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
    "local.retention.bytes", "local.retention.ms", "min.insync.replicas", "remote.log.copy.disable",
    "remote.log.delete.on.disable", "remote.storage.enable", "retention.ms", "segment.jitter.ms", "segment.ms",
))  # fmt: skip
_OF_A_BROKER = re.compile(r"results\[4:[^\]]*\]\.configs\[([^\]]*)\](.*)")
_SYNONYM_OF_A_TOPIC = re.compile(r"results\[2:[^\]]*\]\.configs\[([^\]]*)\]\.synonyms\[.*")
_LISTED = {
    ".value": OTHER_VALUES,
    ".config_source": OTHER_VALUES,
    ".read_only": AT_A_START,
}


def is_brokers_own(found: Difference) -> bool:
    """Of the settings of a broker, and listed here or, as a key of Kafka without effect, in docs/settings.md."""
    match = _OF_A_BROKER.fullmatch(found.path)
    if match is None:
        return False
    name, field = match.groups()
    if name in OF_AUTHORIZER:
        return True
    if field:
        return name in (OTHER_SYNONYMS if field.startswith(".synonyms[") else _LISTED.get(field, ()))
    if found.theirs == ABSENT:
        return name in OURS
    return found.ours == ABSENT and (name in OLDER_NAMES or foreign(name) is not None)


def is_other_synonym(found: Difference) -> bool:
    """Of a topic's setting."""
    match = _SYNONYM_OF_A_TOPIC.fullmatch(found.path)
    return match is not None and match.group(1) in TOPICS_SYNONYMS
