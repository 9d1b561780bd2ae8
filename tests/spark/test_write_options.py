"""Options of a write: those of Spark's Kafka sink and of the producer; what would weaken or break it is refused."""

from __future__ import annotations

import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.client.options import ProducerOptions, parse_options
from quorumlog.spark.write.options import AT_LEAST_ONCE, parse_write_options

BASE = {"bootstrap.servers": "h:1", "delivery": AT_LEAST_ONCE}

REFUSED = [
    ("no delivery named", {"delivery": ""}, r"delivery=exactly-once, the default, is not there yet.*repeated.*Say"),
    ("exactly once", {"delivery": "Exactly-Once"}, "is not there yet"),
    ("another delivery", {"delivery": "at-most-once"}, "must be one of exactly-once, at-least-once: 'at-most-once'"),
    ("no cluster", {"bootstrap.servers": ""}, "set the address of the cluster"),
    ("a typo", {"topics": "orders"}, "unknown option 'topics'; did you mean 'topic'"),
    ("a typo of the producer's", {"kafka.linger.m": "1"}, "did you mean 'kafka.linger.ms'"),
    ("unlike any option", {"zzz": "1"}, "known options: bootstrap.servers, topic"),
    ("of reads", {"startingoffsets": "latest"}, "is of reads, and this is a write"),
    ("of exactly once", {"writeId": "a"}, "'writeId' is of delivery=exactly-once, which is not there yet"),
    ("a path", {"path": "orders"}, "without a path"),
    ("Spark's own: keys", {"kafka.key.serializer": "S"}, "cannot be set here: keys are written as the bytes"),
    ("Spark's own: values", {"quorumlog.value.serializer": "S"}, "cannot be set here: values are written as"),
    ("Java's", {"kafka.partitioner.class": "P"}, "cannot be set here: it is a Java class"),
    ("transactions", {"kafka.transactional.id": "t"}, "would fence each other"),
    ("the client's transport", {"kafka.transport": "grpc"}, "set transport"),
    ("another transport", {"transport": "http"}, "transport must be one of auto, grpc, lane"),
    ("a bad value", {"kafka.linger.ms": "soon"}, "linger_ms must be a whole number"),
    ("a bad codec", {"kafka.compression.type": "brotli"}, "compression_type must be one of"),
    ("an empty topic", {"topic": ""}, "option topic: topic name '': is empty"),
    ("a long topic", {"topic": "t" * 250}, "has 250 characters, limit 249"),
    ("a topic with a space", {"topic": "a b"}, "only ASCII letters"),
]


@pytest.mark.parametrize(("given", "why"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(given: dict[str, str], why: str) -> None:
    """An empty value stands for an option that is not given, but for the topic."""
    options = {name: value for name, value in {**BASE, **given}.items() if value or name == "topic"}
    with pytest.raises(ConfigError, match=why):
        parse_write_options(options)


def test_what_the_producer_gets() -> None:
    given = {
        **BASE, "kafka.acks": "1", "quorumlog.compression.type": "zstd", "batch.size": "1000", "transport": "grpc",
        "checkpointlocation": "/c", "queryname": "q", "includeheaders": "true", "topic": "orders",
    }  # fmt: skip
    options = parse_write_options(given)
    parsed = parse_options(ProducerOptions, options.client, {})
    assert (parsed.bootstrap_servers, parsed.acks, parsed.compression_type) == ("h:1", "1", "zstd")
    assert (parsed.batch_size, parsed.transport, parsed.client_id) == (1000, "grpc", "spark-quorumlog-sink")
    assert (options.topic, options.delivery) == ("orders", AT_LEAST_ONCE)


@pytest.mark.parametrize(("transport", "client"), [("auto", "auto"), ("lane", "auto"), ("grpc", "grpc")])
def test_the_transport(transport: str, client: str) -> None:
    assert parse_write_options({**BASE, "transport": transport}).client["transport"] == client


def test_the_producer_is_idempotent_unless_acks_are_given_up() -> None:
    assert parse_options(ProducerOptions, parse_write_options(BASE).client, {}).idempotent
    assert parse_write_options(BASE).weakness == parse_write_options({**BASE, "kafka.acks": "-1"}).weakness == ""
    for acks in ("0", "1"):
        assert f"kafka.acks={acks}: rows are lost" in parse_write_options({**BASE, "kafka.acks": acks}).weakness
