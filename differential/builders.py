"""A meaningful request of every API, drawn from a `World` of names.

Each builder returns a superset of the fields of all versions, by kio's names: what a version does not have is not
sent. Names are the sequence's own, so that sequences do not see each other; some of a world's topics, groups and
producers are never made, so that every call is also made of what is not there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from differential.step import NO_ID, Batch, Ref, Values
from quorumlog.records.format.batch import Codec

EPOCH_MS = 1_700_000_000_000  # of the first record; both sides get the same times
SESSION = "session"  # the label of the fetch session of a sequence
TOPIC, BROKER, GROUP = 2, 4, 32  # types of resources
NODE = 1
STRANGER = "stranger"  # no member has this id
NOBODY = 77  # no broker has this id
STRANGE_ID = bytes(range(16))
CONFIGS: tuple[tuple[str, str | None], ...] = (
    ("retention.ms", "86400000"), ("retention.bytes", "1000000"), ("cleanup.policy", "compact"),
    ("cleanup.policy", "delete"), ("cleanup.policy", "compact,delete"), ("cleanup.policy", "none"),
    ("max.message.bytes", "1000"), ("max.message.bytes", "-1"), ("segment.bytes", "1048576"), ("segment.bytes", "1"),
    ("min.insync.replicas", "1"), ("min.insync.replicas", "0"), ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.type", "Never"), ("compression.type", "lz4"), ("compression.type", "producer"),
    ("compression.type", "lzma"), ("unclean.leader.election.enable", "true"), ("segment.ms", "3600000"),
    ("retention.ms", "-1"), ("retention.ms", "-2"), ("retention.ms", "soon"), ("retention.ms", None),
    ("no.such.key", "1"),
    ("retention.ms", ""), ("delete.retention.ms", "5"), ("min.cleanable.dirty.ratio", "0.3"),
    ("min.cleanable.dirty.ratio", "1.3"), ("preallocate", "true"), ("preallocate", "perhaps"), ("flush.messages", "1"),
    ("message.timestamp.before.max.ms", "1000"), ("message.timestamp.after.max.ms", "1000"),
    ("follower.replication.throttled.replicas", "0:1"), ("leader.replication.throttled.replicas", "*"),
    ("leader.replication.throttled.replicas", "x"), ("remote.storage.enable", "false"),
)  # fmt: skip


@dataclass(slots=True)
class World:
    """What the requests of one sequence are about. prefix: begins every name. clock: gives each batch other times."""

    rng: Random
    prefix: str
    clock: int = 0
    sequences: dict[tuple[str, str, int], int] = field(default_factory=dict)  # by producer, topic, partition

    def topic(self) -> str:
        return self.prefix + self.rng.choice(("a", "a", "a", "b", "b", "c", "never"))

    def partition(self) -> int:
        return self.rng.choice((0, 0, 0, 0, 1, 1, 2, 9))

    def group(self) -> str:
        return self.prefix + self.rng.choice(("g1", "g1", "g2", "none"))

    def consumer_group(self) -> str:
        return self.prefix + self.rng.choice(("k1", "k1", "k1", "g1", "none"))

    def member(self) -> str:
        return self.rng.choice(("m1", "m1", "m2"))

    def transactional(self) -> str:
        return self.prefix + self.rng.choice(("t1", "t1", "t2"))

    def some(self, draw: Callable[[], Values], most: int = 2) -> list[Values]:
        """One or a few, none of them named twice: what is named twice is odd, and `odd.py` does that."""
        drawn = [draw() for _ in range(self.rng.choice((1, 1, 1, most)))]
        return list({_name_of(one): one for one in drawn}.values())

    def producer(self, name: str) -> tuple[Ref, Ref]:
        return Ref("producer", name), Ref("epoch", name)

    def epoch(self) -> int:
        return self.rng.choice((-1, -1, -1, 0, 0, 1, 5))


def _name_of(values: Values) -> str:
    """The first field that tells one element of an array from another."""
    fields = ("name", "resource_name", "partition_index", "partition", "index", "topic_id")
    return repr(next(values[name] for name in fields if values.get(name) is not None))


Build = Callable[[World], Values]


def topics_of(world: World, partition: Callable[[], Values], most: int = 2) -> list[Values]:
    """Topics under each of the names that versions have for them, with partitions under each of theirs."""

    def one() -> Values:
        name, partitions = world.topic(), world.some(partition, most)
        return {"name": name, "topic": name, "topic_id": Ref("topic", name), "partitions": partitions}

    return world.some(one)


def numbered_topics(world: World) -> list[Values]:
    """Topics with nothing but the numbers of partitions."""

    def one() -> Values:
        name, numbers = world.topic(), sorted({world.partition() for _ in range(2)})
        ids = {"name": name, "topic": name, "topic_id": Ref("topic", name)}
        return {**ids, "partitions": numbers, "partition_indexes": numbers}

    return world.some(one)


def batch(world: World, topic: str, partition: int) -> Batch:
    """Plain, idempotent or transactional, as the world draws; sometimes one that a broker has to refuse or mend."""
    rng = world.rng
    count = rng.choice((1, 1, 2, 3))
    keys = (None, b"k1", b"k2", b"")
    rows = tuple((rng.choice(keys), rng.choice((b"v", b"value" * 3, None, b""))) for _ in range(count))
    world.clock += 10
    times = tuple(EPOCH_MS + world.clock + rng.choice((0, 1, 5, -3)) for _ in range(count))
    codec = rng.choice((Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD))
    kind = rng.choice(("plain", "plain", "idempotent", "idempotent", "transactional"))
    max_time = rng.choice((None, None, None, -1, EPOCH_MS))
    if kind == "plain":
        return Batch(rows=rows, times=times, codec=codec, max_time=max_time, appended=rng.random() < 0.05)
    name = world.prefix + rng.choice(("p1", "p2")) if kind == "idempotent" else world.transactional()
    key = (name, topic, partition)
    sequence = world.sequences.get(key, 0)
    if rng.random() < 0.15:
        sequence = max(0, sequence + rng.choice((-1, 1, 7)))
    else:
        world.sequences[key] = sequence + count
    producer, epoch = world.producer(name)
    is_transactional = kind == "transactional"
    return Batch(
        rows=rows, times=times, codec=codec, producer=producer, epoch=epoch, sequence=sequence,
        transactional=is_transactional,
    )  # fmt: skip


def produce(world: World) -> Values:
    def one() -> Values:
        name, partition = world.topic(), world.partition()
        data = [{"index": partition, "records": batch(world, name, partition)}]
        return {"name": name, "topic_id": Ref("topic", name), "partition_data": data}

    topics = world.some(one)
    acks = world.rng.choice((1, -1, -1))
    batches = [data["records"] for topic in topics for data in topic["partition_data"]]
    named = next((one.producer.label for one in batches if one.transactional), None)
    return {"transactional_id": named, "acks": acks, "timeout": 5_000, "topic_data": topics}


def fetch(world: World) -> Values:
    def one() -> Values:
        return {
            "partition": world.partition(), "current_leader_epoch": world.epoch(),
            "fetch_offset": world.rng.choice((0, 0, 0, 1, 2, 5, 1_000, -1)), "last_fetched_epoch": -1,
            "log_start_offset": -1, "partition_max_bytes": world.rng.choice((1_000_000, 100_000, 1, 0)),
        }  # fmt: skip

    topics = topics_of(world, one)
    session: Values = {"session_id": 0, "session_epoch": world.rng.choice((-1, -1, 0))}
    forgotten: list[Values] = []
    if world.rng.random() < 0.5:  # one session of each sequence goes on, and is begun where there is none
        session = {"session_id": Ref("session", SESSION), "session_epoch": Ref("session epoch", SESSION)}
        topics = world.rng.choice((topics, topics, []))
        forgotten = world.rng.choice(([], [], numbered_topics(world)))
    return {
        "replica_id": -1, "max_wait": world.rng.choice((0, 20)), "min_bytes": world.rng.choice((0, 1)),
        "max_bytes": world.rng.choice((10_000_000, 1_000_000, 100)), "isolation_level": world.rng.choice((0, 1)),
        "topics": topics, "forgotten_topics_data": forgotten, "rack_id": "", **session,
    }  # fmt: skip


def list_offsets(world: World) -> Values:
    def one() -> Values:
        time = world.rng.choice((-1, -2, -3, -4, -5, EPOCH_MS, EPOCH_MS + 15, EPOCH_MS * 2, -6))
        return {"partition_index": world.partition(), "current_leader_epoch": world.epoch(), "timestamp": time}

    # Without an id, which Kafka's message does not have: only we would obey it (quorumlog/wire/format/kio_schemas.py).
    topics = [{"name": topic["name"], "partitions": topic["partitions"]} for topic in topics_of(world, one)]
    return {"replica_id": -1, "isolation_level": world.rng.choice((0, 1)), "topics": topics, "timeout": 3_000}


def metadata(world: World) -> Values:
    def one() -> Values:
        name = world.topic()
        return {"topic_id": NO_ID, "name": name}

    def by_id() -> Values:
        ids: tuple[Any, ...] = (Ref("topic", world.topic()), STRANGE_ID)
        return {"topic_id": world.rng.choice(ids), "name": None}

    topics = world.rng.choice((world.some(one), world.some(one), world.some(by_id), None, []))
    authorized = world.rng.random() < 0.3
    return {
        "topics": topics, "allow_auto_topic_creation": world.rng.random() < 0.2,
        "include_cluster_authorized_operations": authorized, "include_topic_authorized_operations": authorized,
    }  # fmt: skip


def create_topics(world: World) -> Values:
    def one() -> Values:
        rng = world.rng
        drawn = dict(rng.sample(CONFIGS, rng.choice((0, 0, 1, 2))))
        configs = [{"name": name, "value": value} for name, value in drawn.items()]
        assigned = [{"partition_index": number, "broker_ids": [NODE]} for number in range(rng.choice((0, 0, 0, 2)))]
        if assigned and rng.random() < 0.3:
            assigned = rng.choice((assigned[1:], assigned + assigned, [{"partition_index": 0, "broker_ids": [NOBODY]}]))
        partitions, factor = (-1, -1) if assigned else (rng.choice((1, 2, 3, -1, 0)), rng.choice((1, 1, 1, -1, 2)))
        name = rng.choice(
            (world.topic(), world.topic(), world.prefix + "new", world.prefix + "x.y", world.prefix + "x_y")
        )
        name = rng.choice((name, name, name, name, "", ".", "a b", world.prefix + "n" * 250))
        return {
            "name": name, "num_partitions": partitions, "replication_factor": factor, "assignments": assigned,
            "configs": configs,
        }  # fmt: skip

    return {"topics": world.some(one), "timeout": 5_000, "validate_only": world.rng.random() < 0.25}


def delete_topics(world: World) -> Values:
    rng = world.rng
    names = list(dict.fromkeys(world.topic() for _ in range(rng.choice((1, 1, 2)))))
    topics: list[Values] = [{"name": name, "topic_id": NO_ID} for name in names]
    if rng.random() < 0.5:
        topics = [
            {"name": None, "topic_id": rng.choice((Ref("topic", name), Ref("topic", name), STRANGE_ID))}
            for name in names
        ]
    return {"topics": topics, "topic_names": names, "timeout": 5_000}


def delete_records(world: World) -> Values:
    def one() -> Values:
        return {"partition_index": world.partition(), "offset": world.rng.choice((0, 1, 2, -1, 100_000, -2))}

    return {"topics": topics_of(world, one), "timeout": 5_000}


def offset_for_leader_epoch(world: World) -> Values:
    def one() -> Values:
        known = world.epoch()
        return {
            "partition": world.partition(),
            "current_leader_epoch": known,
            "leader_epoch": world.rng.choice((0, 0, 1, -1, 9)),
        }

    return {"replica_id": world.rng.choice((-1, -1, -2)), "topics": topics_of(world, one)}


def describe_configs(world: World) -> Values:
    rng = world.rng

    def one() -> Values:
        kind, name = rng.choice(
            ((TOPIC, world.topic()), (TOPIC, world.topic()), (BROKER, str(NODE)), (BROKER, ""), (BROKER, str(NOBODY)),
             (GROUP, world.group()), (99, "x"), (0, ""), (8, str(NODE)), (16, "x"))
        )  # fmt: skip
        keys = rng.choice((None, ["retention.ms"], ["retention.ms", "no.such.key"], []))
        return {"resource_type": kind, "resource_name": name, "configuration_keys": keys}

    return {"resources": world.some(one), "include_synonyms": rng.random() < 0.5, "include_documentation": False}


def _altered(world: World) -> tuple[str, str | None]:
    return world.rng.choice(CONFIGS)


def alter_configs(world: World) -> Values:
    def one() -> Values:
        configs = [{"name": name, "value": value} for name, value in (_altered(world),)]
        return {"resource_type": TOPIC, "resource_name": world.topic(), "configs": configs}

    return {"resources": world.some(one), "validate_only": world.rng.random() < 0.4}


def incremental_alter_configs(world: World) -> Values:
    def one() -> Values:
        configs = []
        for name, value in dict(_altered(world) for _ in range(world.rng.choice((1, 1, 2)))).items():
            operation = world.rng.choice((0, 0, 0, 1, 2, 3))
            configs.append({"name": name, "config_operation": operation, "value": value})
        kind, name = world.rng.choice(((TOPIC, world.topic()),) * 5 + ((GROUP, world.group()), (99, "x"), (16, "x")))
        return {"resource_type": kind, "resource_name": name, "configs": configs}

    return {"resources": world.some(one), "validate_only": world.rng.random() < 0.4}


def create_partitions(world: World) -> Values:
    def one() -> Values:
        count = world.rng.choice((2, 3, 3, 4, 1, 0, -1))
        assigned = world.rng.choice((None, None, None, [{"broker_ids": [NODE]}], [{"broker_ids": [NOBODY]}], []))
        return {"name": world.topic(), "count": count, "assignments": assigned}

    return {"topics": world.some(one), "timeout": 5_000, "validate_only": world.rng.random() < 0.4}


def init_producer_id(world: World) -> Values:
    name = world.transactional()
    again = world.rng.random() < 0.3
    producer, epoch = world.producer(name) if again else (-1, -1)
    timeout = world.rng.choice((60_000, 60_000, 60_000, 0, -1, 10**9))
    is_plain = world.rng.random() < 0.3
    values = {"transaction_timeout": timeout, "producer_id": producer, "producer_epoch": epoch}
    return {**values, "transactional_id": None if is_plain else name}


def _owned(world: World) -> Values:
    name = world.transactional()
    producer, epoch = world.producer(name)
    if world.rng.random() < 0.1:
        epoch = Ref("epoch", name, plus=world.rng.choice((1, -1)))
    return {"transactional_id": name, "producer_id": producer, "producer_epoch": epoch}


def add_partitions_to_txn(world: World) -> Values:
    topics, owned = numbered_topics(world), _owned(world)
    old = {f"v3_and_below_{name}": value for name, value in owned.items()} | {"v3_and_below_topics": topics}
    return {**old, "transactions": [{**owned, "verify_only": world.rng.random() < 0.3, "topics": topics}]}


def add_offsets_to_txn(world: World) -> Values:
    return {**_owned(world), "group_id": world.group()}


def end_txn(world: World) -> Values:
    return {**_owned(world), "committed": world.rng.random() < 0.6}


def _committed(world: World) -> Values:
    return {
        "partition_index": world.partition(), "committed_offset": world.rng.choice((0, 1, 5, 100)),
        "committed_leader_epoch": world.rng.choice((-1, 0, 3)),
        "committed_metadata": world.rng.choice((None, "", "note")),
    }  # fmt: skip


def txn_offset_commit(world: World) -> Values:
    topics = topics_of(world, lambda: _committed(world))
    return {
        **_owned(world), "group_id": world.group(), "generation_id": world.rng.choice((-1, -1, 1, 5)),
        "member_id": world.rng.choice(("", "", STRANGER)), "group_instance_id": None, "topics": topics,
    }  # fmt: skip


def offset_commit(world: World) -> Values:
    member = world.group(), world.member()
    mode = world.rng.choice(("simple", "simple", "member", "wrong"))
    identity: Values = {"group_id": member[0], "member_id": "", "generation_id_or_member_epoch": -1}
    label = ":".join(member)
    if mode == "member":
        identity |= {"member_id": Ref("member", label), "generation_id_or_member_epoch": Ref("generation", label)}
    elif mode == "wrong":
        identity |= {"member_id": STRANGER, "generation_id_or_member_epoch": world.rng.choice((0, 1, 7))}
    topics = topics_of(world, lambda: _committed(world))
    return {**identity, "group_instance_id": None, "retention_time": -1, "topics": topics}


def offset_fetch(world: World) -> Values:
    topics = None if world.rng.random() < 0.3 else numbered_topics(world)
    group = {"group_id": world.group(), "member_id": None, "member_epoch": -1, "topics": topics}
    old = topics if topics is not None or world.rng.random() < 0.5 else []
    return {"group_id": group["group_id"], "topics": old, "groups": [group], "require_stable": world.rng.random() < 0.5}


def offset_delete(world: World) -> Values:
    topics = topics_of(world, lambda: {"partition_index": world.partition()})
    return {"group_id": world.group(), "topics": topics}


def find_coordinator(world: World) -> Values:
    kind = world.rng.choice((0, 0, 1, 1, 7))
    name = world.group() if kind == 0 else world.transactional()
    return {"key": name, "key_type": kind, "coordinator_keys": [name]}


def subscription(topic: str) -> bytes:
    """Of a consumer, in version 0 of its protocol: one topic. Kafka's coordinator reads it, and hangs if it cannot."""
    return struct.pack(f">hih{len(topic)}si", 0, 1, len(topic), topic.encode(), -1)


def join_group(world: World) -> Values:
    group, member = world.group(), world.member()
    names = world.rng.choice((["range"], ["range", "rr"], ["rr"]))
    protocols = [{"name": name, "metadata": subscription(world.prefix + "a")} for name in names]
    instance = world.rng.choice((None, None, None, "static"))
    known = world.rng.choice((Ref("member", f"{group}:{member}"),) * 4 + (STRANGER,))
    return {
        "group_id": group, "session_timeout": world.rng.choice((30_000, 30_000, 30_000, 1)),
        "rebalance_timeout": 30_000,
        "member_id": known, "group_instance_id": instance,
        "protocol_type": world.rng.choice(("consumer",) * 5 + ("connect",)),
        "protocols": protocols, "reason": None,
    }  # fmt: skip


def _member(world: World) -> Values:
    group, member = world.group(), world.member()
    label = f"{group}:{member}"
    generation = Ref("generation", label, plus=world.rng.choice((0, 0, 0, 0, 1, -1)))
    member_id = world.rng.choice((Ref("member", label),) * 5 + (STRANGER,))
    return {"group_id": group, "generation_id": generation, "member_id": member_id, "group_instance_id": None}


def sync_group(world: World) -> Values:
    values = _member(world)
    assignments = [{"member_id": values["member_id"], "assignment": struct.pack(">hii", 0, 0, -1)}]
    return {
        **values,
        "protocol_type": "consumer",
        "protocol_name": world.rng.choice(("range", "range", "rr")),
        "assignments": assignments,
    }


def leave_group(world: World) -> Values:
    values = _member(world)
    return {
        **values,
        "members": [
            {
                "member_id": values["member_id"],
                "group_instance_id": world.rng.choice((None, None, "static")),
                "reason": None,
            }
        ],
    }


def describe_groups(world: World) -> Values:
    drawn = [world.rng.choice((world.group(), world.consumer_group())) for _ in range(world.rng.choice((1, 2)))]
    groups = list(dict.fromkeys(drawn))
    return {"groups": groups, "group_ids": groups, "include_authorized_operations": world.rng.random() < 0.3}


def list_groups(world: World) -> Values:
    states = world.rng.choice(([], [], ["Empty"], ["Stable", "Dead"], ["nonsense"], ["stable"]))
    return {"states_filter": states, "types_filter": world.rng.choice(([], [], ["classic"], ["Consumer"], ["odd"]))}


def delete_groups(world: World) -> Values:
    return {"groups_names": [world.rng.choice((world.group(), world.consumer_group()))]}


def consumer_group_heartbeat(world: World) -> Values:
    rng, group, member = world.rng, world.consumer_group(), world.member()
    epoch = rng.choice(
        (0, 0, 0, Ref("generation", f"{group}:{member}"), Ref("generation", f"{group}:{member}"), -1, 7, -2, -3)
    )
    names = rng.choice(([world.topic()], [world.topic()], None, []))
    owned = rng.choice(([], [], None, [{"topic_id": Ref("topic", world.topic()), "partitions": [0]}]))
    return {
        "group_id": group, "member_id": f"{group}:{member}", "member_epoch": epoch,
        "instance_id": rng.choice((None, None, None, "static")), "rack_id": None,
        "rebalance_timeout": rng.choice((30_000, 30_000, 30_000, -1)), "subscribed_topic_names": names,
        "subscribed_topic_regex": rng.choice((None, None, None, None, world.prefix + "a.*", "(")),
        "server_assignor": rng.choice((None, None, "uniform", "range", "nonsense")), "topic_partitions": owned,
    }  # fmt: skip


def describe_log_dirs(world: World) -> Values:
    return {"topics": world.rng.choice((None, numbered_topics(world), numbered_topics(world), []))}


def elect_leaders(world: World) -> Values:
    return {
        "election_type": world.rng.choice((0, 0, 1, 2)),
        "topic_partitions": numbered_topics(world),
        "timeout": 5_000,
    }


def alter_partition_reassignments(world: World) -> Values:
    def one() -> Values:
        replicas = world.rng.choice((None, [NODE], [NODE], [NOBODY], [], [NODE, NODE], [-1]))
        return {"partition_index": world.partition(), "replicas": replicas}

    return {
        "timeout": 5_000,
        "allow_replication_factor_change": world.rng.random() < 0.7,
        "topics": topics_of(world, one),
    }


def list_partition_reassignments(world: World) -> Values:
    return {"timeout": 5_000, "topics": world.rng.choice((None, numbered_topics(world), []))}


def alter_replica_log_dirs(world: World) -> Values:
    return {"dirs": [{"path": world.rng.choice(("/no/such/place", "relative", "")), "topics": numbered_topics(world)}]}


def describe_cluster(world: World) -> Values:
    kind, authorized = world.rng.choice((1, 1, 2, 0)), world.rng.random() < 0.3
    fenced = world.rng.random() < 0.5
    return {
        "include_cluster_authorized_operations": authorized,
        "endpoint_type": kind,
        "include_fenced_brokers": fenced,
    }


def describe_quorum(world: World) -> Values:
    topic = world.rng.choice(("__cluster_metadata", "__cluster_metadata", "other"))
    return {"topics": [{"topic_name": topic, "partitions": [{"partition_index": world.rng.choice((0, 0, 1))}]}]}


def describe_topic_partitions(world: World) -> Values:
    topics = world.some(lambda: {"name": world.topic()})
    cursor = world.rng.choice((None, None, {"topic_name": world.topic(), "partition_index": 1}))
    return {"topics": topics, "response_partition_limit": world.rng.choice((2_000, 2_000, 1, 2, 0)), "cursor": cursor}


def update_features(world: World) -> Values:
    update = {"feature": "no.such.feature", "max_version_level": 1, "allow_downgrade": False, "upgrade_type": 1}
    return {"timeout": 5_000, "feature_updates": [update], "validate_only": world.rng.random() < 0.5}


def describe_producers(world: World) -> Values:
    return {"topics": numbered_topics(world)}


def describe_transactions(world: World) -> Values:
    return {"transactional_ids": list(dict.fromkeys(world.transactional() for _ in range(2)))}


def list_transactions(world: World) -> Values:
    rng = world.rng
    return {
        "state_filters": rng.choice(([], [], ["Ongoing"], ["nonsense"], ["Empty", "CompleteCommit"])),
        "producer_id_filters": rng.choice(([], [], [Ref("producer", world.transactional())], [-1])),
        "duration_filter": rng.choice((-1, -1, 0, 10**12)),
        "transactional_id_pattern": rng.choice((None, None, world.prefix + ".*", "(", "")),
    }  # fmt: skip


def write_txn_markers(world: World) -> Values:
    owned = _owned(world)
    topics = [{"name": world.prefix + "never", "partition_indexes": [0]}]
    marker = {**owned, "transaction_result": False, "topics": topics, "coordinator_epoch": 0}
    return {"markers": [{**marker, "transaction_version": world.rng.choice((0, 2))}]}


def acls(world: World) -> Values:
    """Kinds of resources, patterns, operations and permissions: of rules, and where a filter may say "any"."""
    choice = world.rng.choice
    names = (world.topic(), world.topic()[:-1], "*", "kafka-cluster", "")
    who = f"User:{world.prefix}u"  # rules stay, and each sequence has its own

    def wanted() -> Values:
        return {
            "resource_type_filter": choice((1, 2, 2, 2, 3, 4)), "resource_name_filter": choice((*names[:3], None)),
            "pattern_type_filter": choice((1, 2, 3, 3, 4)), "principal_filter": who,
            "host_filter": choice(("*", "10.0.0.1", None)), "operation": choice((1, 1, 2, 3, 4)),
            "permission_type": choice((1, 1, 2, 3)),
        }  # fmt: skip

    def made() -> Values:
        return {
            "resource_type": choice((2, 2, 2, 3, 4)), "resource_name": choice((*names[:3], *names)),
            "resource_pattern_type": choice((3, 3, 4)), "operation": choice((2, 3, 3, 4)),
            "principal": choice((who, who, who, "u")), "host": choice(("*", "10.0.0.1")),
            "permission_type": choice((2, 3, 3)),
        }  # fmt: skip

    return {
        **wanted(),
        "filters": [wanted() for _ in range(choice((0, 1, 1, 2)))],
        "creations": [made() for _ in range(choice((0, 1, 2, 3)))],
    }


def client_quotas(world: World) -> Values:
    """Of users that nobody is, so that nothing of the sequences is held back."""
    choice = world.rng.choice
    user = world.prefix + choice(("u", "u", "v"))
    entities: tuple[list[tuple[str, str]], ...] = (
        [("user", user)], [("user", user)], [("user", user), ("client-id", "c")], [("client-id", user)], [],
        [("user", user), ("ip", "10.0.0.1")], [("host", user)], [("user", ""), ("client-id", "c")],
    )  # fmt: skip
    ops = (
        ("producer_byte_rate", 100_000.0), ("consumer_byte_rate", 200_000.0), ("request_percentage", 12.5),
        ("controller_mutation_rate", 2.5), ("producer_byte_rate", 0.0), ("producer_byte_rate", 1.5), ("rate", 1.0),
    )  # fmt: skip

    def entry() -> Values:
        key, value = choice(ops)
        return {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in choice(entities)],
            "ops": [{"key": key, "value": value, "remove": choice((False, False, True))}],
        }

    asked = (("user", 0, user), ("user", 0, user), ("client-id", 0, user), ("user", 3, user), ("host", 0, user))
    components = [dict(zip(("entity_type", "match_type", "match"), choice(asked), strict=True))]
    return {
        "entries": [entry()], "validate_only": choice((False, False, True)), "components": components,
        "strict": choice((False, False, True)),
    }  # fmt: skip


def scram(world: World) -> Values:
    """Passwords salted already, as calls have them."""
    choice = world.rng.choice
    mechanisms = (1, 1, 2, 2, 0, 3)

    def user() -> str:
        return world.prefix + choice(("u", "u", "v", "w"))

    def upsertion() -> Values:
        return {
            "name": choice((user(), user(), "")), "mechanism": choice(mechanisms),
            "iterations": choice((4096, 4096, 8192, 4095, 16_385)), "salt": b"salt" * 4,
            "salted_password": choice((b"p" * 32, b"q" * 64)),
        }  # fmt: skip

    return {
        "users": [{"name": user()} for _ in range(choice((1, 1, 2)))],
        "deletions": [{"name": user(), "mechanism": choice(mechanisms)} for _ in range(choice((0, 0, 1)))],
        "upsertions": [upsertion() for _ in range(choice((0, 1, 1, 2)))],
    }


def delegation_token(world: World) -> Values:
    choice = world.rng.choice

    def renewer() -> Values:
        return {"principal_type": choice(("User", "User", "Group")), "principal_name": "renewer"}

    return {
        "owner_principal_type": choice((None, "User")), "owner_principal_name": choice((None, "owner")),
        "renewers": [renewer() for _ in range(choice((0, 1, 2)))], "max_lifetime": choice((-1, 1_000)),
        "hmac": choice((b"", b"none")), "renew_period": choice((-1, 1_000)), "expiry_time_period": choice((-1, 0)),
        "owners": choice((None, [], [{"principal_type": "User", "principal_name": "owner"}])),
    }  # fmt: skip


def unregister_broker(_world: World) -> Values:
    return {"broker_id": NOBODY}


def add_raft_voter(_world: World) -> Values:
    listeners = [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 1}]
    values = {"cluster_id": None, "timeout": 1_000, "voter_id": NOBODY, "voter_directory_id": STRANGE_ID}
    return {**values, "listeners": listeners, "ack_when_committed": True}


def remove_raft_voter(_world: World) -> Values:
    return {"cluster_id": None, "voter_id": NOBODY, "voter_directory_id": STRANGE_ID}


def api_versions(world: World) -> Values:
    name = world.rng.choice(("differential", "differential", "", "a b"))
    return {"client_software_name": name, "client_software_version": world.rng.choice(("1.0", ""))}


BUILDERS: dict[str, Build] = {
    "produce": produce, "fetch": fetch, "list_offsets": list_offsets, "metadata": metadata,
    "offset_commit": offset_commit, "offset_fetch": offset_fetch, "find_coordinator": find_coordinator,
    "join_group": join_group, "heartbeat": _member, "leave_group": leave_group, "sync_group": sync_group,
    "describe_groups": describe_groups, "list_groups": list_groups, "api_versions": api_versions,
    "create_topics": create_topics, "delete_topics": delete_topics, "delete_records": delete_records,
    "init_producer_id": init_producer_id, "offset_for_leader_epoch": offset_for_leader_epoch,
    "add_partitions_to_txn": add_partitions_to_txn, "add_offsets_to_txn": add_offsets_to_txn, "end_txn": end_txn,
    "write_txn_markers": write_txn_markers, "txn_offset_commit": txn_offset_commit, "describe_acls": acls,
    "create_acls": acls, "delete_acls": acls, "describe_configs": describe_configs, "alter_configs": alter_configs,
    "alter_replica_log_dirs": alter_replica_log_dirs, "describe_log_dirs": describe_log_dirs,
    "create_partitions": create_partitions, "delete_groups": delete_groups, "elect_leaders": elect_leaders,
    "incremental_alter_configs": incremental_alter_configs, "offset_delete": offset_delete,
    "alter_partition_reassignments": alter_partition_reassignments,
    "list_partition_reassignments": list_partition_reassignments, "describe_quorum": describe_quorum,
    "update_features": update_features, "describe_cluster": describe_cluster, "describe_producers": describe_producers,
    "unregister_broker": unregister_broker, "describe_transactions": describe_transactions,
    "list_transactions": list_transactions, "consumer_group_heartbeat": consumer_group_heartbeat,
    "consumer_group_describe": describe_groups, "describe_topic_partitions": describe_topic_partitions,
    "add_raft_voter": add_raft_voter, "remove_raft_voter": remove_raft_voter, "alter_client_quotas": client_quotas,
    "describe_client_quotas": client_quotas, "alter_user_scram_credentials": scram,
    "describe_user_scram_credentials": scram, "create_delegation_token": delegation_token,
    "renew_delegation_token": delegation_token, "expire_delegation_token": delegation_token,
    "describe_delegation_token": delegation_token,
}  # fmt: skip
