"""Keys of Kafka that nothing here reads, so that an existing file can be used as it is.

`IDLE` are accepted at any value, with a warning that says why they have no effect: nothing that their user counts on is
lost, or it is told elsewhere. `ONLY` are accepted at the values that say what is true here, and refused otherwise,
because silence would be dangerous: somebody who forbids the deletion of topics must not find out later. A key that
begins with one of `PREFIXES` is like a key of its table. docs/settings.md shows all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quorumlog.configs.live import key_of_listener
from quorumlog.settings.security import LISTENER_PREFIX
from quorumlog_server.config.properties import ConfigError


@dataclass(frozen=True, slots=True)
class Foreign:
    """only: the values that are accepted, compared without regard to case; empty for any. reason: a whole sentence."""

    reason: str
    only: tuple[str, ...] = ()

    @property
    def effect(self) -> str:
        if not self.only:
            return "no effect"
        return f"refused, unless it is {' or '.join(filter(None, self.only)) or 'empty'}"

    def accepts(self, value: str) -> bool:
        return not self.only or value.strip().lower() in self.only


_THREADS = "A node has one loop and no pools of threads."
_FORGOTTEN = "A waiting request is forgotten when it is answered."
_NOTED = "A sync comes when flush.ms is over, and a log's start is noted when it changes: no task looks for them."
_SLICES = "What a turn of the loop brings is one batch; loads and assignments are cut into slices."
_SOCKETS = "The system chooses the sizes of a socket's buffers and queues."
_SHARE = "There are no share groups."
_STREAMS = "There are no groups of Kafka Streams' own protocol; Streams uses consumer groups."
_TIERS = "Logs are kept in log.dirs alone: there is no tiered storage."
_CLASSES = "No class is loaded: what it would do is built in, or there is no such thing."
_OPENSSL = (
    "TLS is OpenSSL's, which has no such choice; ssl.enabled.protocols and ssl.cipher.suites say what is allowed."
)
_NODES = "Nodes prove themselves to each other by the cluster's secret or by certificates, and not by SASL."
_KERBEROS = "Kerberos is not supported."
_TOKENS = "A broker gets no tokens; keys that check them are named above."
_USERS = "Users are in the metadata of the cluster, and not in files of nodes; `quorumlog user create` makes one."
_OPENED = "A listener opens when the node's metadata has caught up."
_METRICS = "Metrics are served at metrics.port, without reporters and windows."
_WINDOWS = "Quotas count in eleven samples of a second."
_CALLS = "Calls between nodes have time-outs and pauses of their own."
_OLDER = "Kafka 4 does not have it any more."
_INSIDE = "It is internal to Kafka."
_MOVES = "Moves between directories have no windows."

_IDLE: tuple[tuple[str, str], ...] = (
    (_THREADS, "background.threads num.io.threads num.network.threads num.replica.fetchers queued.max.requests"),
    (_THREADS, "group.coordinator.background.threads group.coordinator.threads share.coordinator.threads"),
    (_FORGOTTEN, "delete.records.purgatory.purge.interval.requests fetch.purgatory.purge.interval.requests"),
    (_FORGOTTEN, "producer.purgatory.purge.interval.requests share.fetch.purgatory.purge.interval.requests"),
    (_NOTED, "log.flush.scheduler.interval.ms log.flush.start.offset.checkpoint.interval.ms"),
    (_SLICES, "group.consumer.assignor.offload.enable group.coordinator.append.linger.ms offsets.load.buffer.size"),
    (_SLICES, "group.coordinator.cached.buffer.max.bytes transaction.state.log.load.buffer.size"),
    (_SLICES, "controller.quorum.append.linger.ms max.request.partition.size.limit"),
    (_SOCKETS, "socket.receive.buffer.bytes socket.send.buffer.bytes socket.listen.backlog.size"),
    (_SOCKETS, "replica.socket.receive.buffer.bytes"),
    (_TIERS, "log.local.retention.bytes log.local.retention.ms follower.fetch.last.tiered.offset.enable"),
    (_TIERS, "remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms"),
    (_OPENED, "early.start.listeners"),
    (_CLASSES, "principal.builder.class security.providers ssl.engine.factory.class sasl.login.class"),
    (
        _CLASSES,
        "sasl.server.callback.handler.class sasl.client.callback.handler.class sasl.login.callback.handler.class",
    ),
    (_OPENSSL, "ssl.keymanager.algorithm ssl.protocol ssl.provider ssl.secure.random.implementation"),
    (_OPENSSL, "ssl.trustmanager.algorithm"),
    (_NODES, "sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol"),
    (_NODES, "ssl.endpoint.identification.algorithm"),
    (_USERS, "sasl.jaas.config"),
    (_METRICS, "kafka.metrics.polling.interval.secs kafka.metrics.reporters metric.reporters metrics.num.samples"),
    (_METRICS, "auto.include.jmx.reporter metrics.recording.level metrics.sample.window.ms telemetry.max.bytes"),
    (_WINDOWS, "controller.quota.window.num controller.quota.window.size.seconds quota.window.num"),
    (_WINDOWS, "quota.window.size.seconds replication.quota.window.num replication.quota.window.size.seconds"),
    (_MOVES, "alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds"),
    (_CALLS, "controller.quorum.election.backoff.max.ms controller.quorum.request.timeout.ms request.timeout.ms"),
    (_CALLS, "controller.quorum.retry.backoff.ms controller.socket.timeout.ms replica.fetch.backoff.ms"),
    (_CALLS, "replica.socket.timeout.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms"),
    (_CALLS, "controller.quorum.fetch.max.bytes"),
    (_INSIDE, "controller.performance.always.log.threshold.ms controller.performance.sample.period.ms"),
    (_INSIDE, "internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes server.max.startup.time.ms"),
    (_INSIDE, "internal.metadata.max.batch.size.in.bytes unclean.leader.election.interval.ms"),
    (_OLDER, "inter.broker.protocol.version log.message.format.version log.message.downconversion.enable"),
    (_OLDER, "offsets.commit.required.acks"),
)

IDLE: Mapping[str, Foreign] = {name: Foreign(reason) for reason, names in _IDLE for name in names.split()}

_NO_POLICY = "No class is loaded, so nothing would be refused."
_BETWEEN = (
    "Nodes are encrypted at their own listeners, by listener.security.protocol.map (INTERNAL:SSL) and "
    "quorumlog.inter.node.auth."
)
_UNSTABLE = "Nothing here is unstable in Kafka's sense."

ONLY: Mapping[str, Foreign] = {
    "alter.config.policy.class.name": Foreign(_NO_POLICY, ("",)),
    "client.quota.callback.class": Foreign(_NO_POLICY, ("",)),
    "create.topic.policy.class.name": Foreign(_NO_POLICY, ("",)),
    "delete.topic.enable": Foreign("Topics can always be deleted.", ("true",)),
    "remote.log.storage.system.enable": Foreign(_TIERS, ("false",)),
    "security.inter.broker.protocol": Foreign(_BETWEEN, ("plaintext",)),
    "unstable.api.versions.enable": Foreign(_UNSTABLE, ("false",)),
    "unstable.feature.versions.enable": Foreign(_UNSTABLE, ("false",)),
}

PREFIXES: Mapping[str, Foreign] = {
    "delegation.token.": Foreign("There are no delegation tokens; who asks for one is refused."),
    "group.share.": Foreign(_SHARE),
    "group.streams.": Foreign(_STREAMS),
    "remote.log.": Foreign(_TIERS),
    "rlmm.config.": Foreign(_TIERS),
    "rsm.config.": Foreign(_TIERS),
    "sasl.kerberos.": Foreign(_KERBEROS),
    "sasl.login.": Foreign(_NODES),
    "sasl.oauthbearer.": Foreign(_TOKENS),
    "share.coordinator.": Foreign(_SHARE),
    "zookeeper.": Foreign("Metadata is with the controllers: there is no ZooKeeper to connect to.", ("",)),
}


def foreign(key: str) -> Foreign | None:
    """What becomes of a key of Kafka that has no effect here; None if this is none."""
    if key_of_listener(key) is not None:
        return None
    return (
        ONLY.get(key)
        or IDLE.get(key)
        or next((one for prefix, one in PREFIXES.items() if key.startswith(prefix)), None)
        or _of_listener(key)
    )


def _of_listener(key: str) -> Foreign | None:
    """Of `listener.name.NAME.KEY`, where KEY has no effect, and of `listener.name.NAME.MECHANISM.KEY`, which Kafka has
    for keys of SASL. A name may have points."""
    if not key.startswith(LISTENER_PREFIX):
        return None
    words = key.removeprefix(LISTENER_PREFIX).split(".")
    for start in range(1, len(words)):
        rest = ".".join(words[start:])
        found = IDLE.get(rest) or next((one for prefix, one in PREFIXES.items() if rest.startswith(prefix)), None)
        if found is not None:
            return found
    return None


def check_foreign(values: Mapping[str, str], where: str) -> None:
    """Raises ConfigError for the first value that says what is not so here."""
    for key, value in values.items():
        found = foreign(key)
        if found is not None and not found.accepts(value):
            choices = " or ".join(one for one in found.only if one)
            rather = f"remove it, or write {key}={choices}" if choices else "remove it"
            raise ConfigError(f"{where}: {key}={value} cannot be kept: {found.reason} {rather[0].upper()}{rather[1:]}")


def idle_of(values: Mapping[str, str]) -> dict[str, list[str]]:
    """The keys that are set without effect, sorted, by the reason; not those that say what is true here."""
    reasons: dict[str, list[str]] = {}
    for key in sorted(values):
        found = foreign(key)
        if found is not None and not found.only:
            reasons.setdefault(found.reason, []).append(key)
    return reasons
