"""MirrorMaker 2: a topic of Apache Kafka is copied here with its records and its settings, and follows their changes.

It asks the source for every setting of the topic and hands all of them on, those at their defaults too
(`use.defaults.from=source`, KIP-875): each key that Kafka knows has to be taken, or the topic keeps none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from applications.application import Application, Stage
from applications.environments import get_jars
from applications.running import Process
from bench.peers.kafka_peer import KafkaPeer
from bench.peers.kafka_tools import SHORT_LIVED, get_kafka, properties_text

MIRROR_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"
ARTIFACTS = ("connect-mirror", "connect-runtime")
SMALL_HEAP = ("-Xms256M", "-Xmx1G", "-XX:-UseG1GC", *SHORT_LIVED)
TIMEOUT_S = 120.0
SILENT = 0  # of syslog: Kafka is still starting when it is called first
SOURCE = "kafka"  # the alias of the source, with which the copy's name begins
TOPIC, COPY = "orders", f"{SOURCE}.orders"
SETTINGS = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "7200000",
    "max.message.bytes": "300000",
    "compression.type": "zstd",
}
LATER = {"retention.ms": "3600000"}
RECORDS = [b"one", b"two", b"three"]

prepare = partial(get_jars, name="mirror-maker", artifacts=ARTIFACTS)


def run(stage: Stage) -> None:
    """The copy has the records and the settings, and a changed setting comes after it."""
    jars = prepare(stage.cache)
    one = {f"{name}.replication.factor": 1 for name in ("offsets.topic", "transaction.state.log")}
    changes = {**one, "transaction.state.log.min.isr": 1, "default.replication.factor": 1, "min.insync.replicas": 1}
    source = KafkaPeer(
        get_kafka(stage.cache / "kafka"), stage.folder / "source", nodes=1, changes=changes, options=SMALL_HEAP
    )
    try:
        source.start()
        theirs, ours = _admin(source.bootstrap_servers), _admin(stage.cluster.bootstrap_servers)
        _fill(theirs, source.bootstrap_servers)
        properties = stage.folder / "mirror.properties"
        properties.write_text(properties_text(_properties(source.bootstrap_servers, stage.cluster.bootstrap_servers)))
        command = jars.command(MIRROR_MAKER, [str(properties)], SHORT_LIVED)
        with Process(command, log=stage.folder / "mirror.log", cwd=stage.folder) as mirror:
            has = partial(_has, ours)
            mirror.until(lambda: has(SETTINGS), f"the copy has {SETTINGS}", TIMEOUT_S)
            mirror.until(lambda: _values(stage) == RECORDS, f"the copy has {RECORDS}", TIMEOUT_S)
            _set(theirs, LATER)
            mirror.until(lambda: has(SETTINGS | LATER), f"the copy has {LATER}, too", TIMEOUT_S)
    finally:
        source.close()


def _properties(source: str, target: str) -> dict[str, object]:
    """Those of Kafka's connect-mirror-maker.properties, with short intervals. Nothing flows back."""
    internal = (
        "checkpoints.topic",
        "heartbeats.topic",
        "offset-syncs.topic",
        "offset.storage",
        "status.storage",
        "config.storage",
    )
    return {
        "clusters": f"{SOURCE}, ours",
        f"{SOURCE}.bootstrap.servers": source,
        "ours.bootstrap.servers": target,
        f"{SOURCE}->ours.enabled": "true",
        f"{SOURCE}->ours.topics": TOPIC,
        "use.defaults.from": "source",
        "replication.factor": 1,
        "sync.topic.acls.enabled": "false",  # nobody is told from anybody else here
        "refresh.topics.interval.seconds": 2,
        "sync.topic.configs.interval.seconds": 2,
        **{f"{name}.replication.factor": 1 for name in internal},
    }


def _admin(servers: str) -> Any:
    """Of librdkafka. Futures of one that is thrown away would never be done."""
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": servers, "log_level": SILENT})


def _fill(admin: Any, servers: str) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.cimpl import NewTopic

    for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=SETTINGS)], request_timeout=TIMEOUT_S).values():
        future.result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": servers, "log_level": SILENT})
    for number, value in enumerate(RECORDS):
        producer.produce(TOPIC, value, str(number))
    left = producer.flush(TIMEOUT_S)
    assert not left, f"{left} records did not reach Kafka"


def _set(admin: Any, settings: Mapping[str, str]) -> None:
    from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
    from confluent_kafka.admin._resource import ResourceType

    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in settings.items()]
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(TIMEOUT_S)


def _has(admin: Any, settings: Mapping[str, str]) -> bool:
    """Whether the copy exists with these settings."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin._config import ConfigResource
    from confluent_kafka.admin._resource import ResourceType

    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, COPY)])
    try:
        found: Mapping[str, Any] = next(iter(asked.values())).result(TIMEOUT_S)
    except KafkaException:
        return False  # it is not there yet
    return {key: found[key].value for key in settings} == dict(settings)


def _values(stage: Stage) -> list[bytes | None]:
    return [value for _, value in stage.cluster.read(COPY)]


MIRROR_MAKER_2 = Application(
    "mirror-maker",
    "MirrorMaker 2 copies a topic of Apache Kafka, with its settings and their changes",
    prepare,
    run,
)
