"""Options of a write: those of Spark's Kafka sink and of the producer; what would weaken or break it is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.client.options import ProducerOptions, parse_options
from quorumlog.messages.joint import BeginJointRequest
from quorumlog.rpc.convert.services import encode_BeginJointRequest
from quorumlog.spark.write.options import AT_LEAST_ONCE, NAMES, OnceOptions, parse_write_options

BASE = {"bootstrap.servers": "h:1", "delivery": AT_LEAST_ONCE}

REFUSED = [
    ("another delivery", {"delivery": "at-most-once"}, "must be one of exactly-once, at-least-once: 'at-most-once'"),
    ("no cluster", {"bootstrap.servers": ""}, "set the address of the cluster"),
    ("a typo", {"topics": "orders"}, "unknown option 'topics'; did you mean 'topic'"),
    ("a typo of the producer's", {"kafka.linger.m": "1"}, "did you mean 'kafka.linger.ms'"),
    ("unlike any option", {"zzz": "1"}, "known options: bootstrap.servers, topic"),
    ("of reads", {"startingoffsets": "latest"}, "is of reads, and this is a write"),
    ("of exactly once", {"writeId": "a"}, "'writeId' is of delivery=exactly-once: leave out one of the two"),
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
    assert (options.topic, options.once) == ("orders", None)


ONCE = {"bootstrap.servers": "h:1"}
IDS = {"writeId": "nightly", "writeVersion": "7"}
REFUSED_ONCE = [
    ("no time", False, {"transactionTimeout": "0s"}, "transactionTimeout must be above 0"),
    ("not a time", True, {"transactionTimeout": "soon"}, "must be a time such as 500ms, 30s, 15m or 1h"),
    ("more ms than a call holds", True, {"transactionTimeout": "25d"}, "transactionTimeout must be at most 2147483647"),
    ("a name alone", False, {"writeId": "nightly"}, "writeId needs writeVersion, too"),
    ("a version alone", False, {"writeVersion": "7"}, "writeVersion needs writeId, too"),
    ("no name", False, {**IDS, "writeId": ""}, "must not be empty"),
    ("an empty sink", True, {"sinkId": ""}, "must not be empty"),
    ("a version below 0", False, {**IDS, "writeVersion": "-1"}, "writeVersion must be a whole number from 0 to"),
    ("a version above 63 bits", False, {**IDS, "writeVersion": str(2**63)}, "must be a whole number from 0 to"),
    ("older than nothing", False, {"skipOlder": "true"}, "skipOlder needs writeId and writeVersion"),
    ("not a truth", False, {**IDS, "skipOlder": "yes"}, "skipOlder must be one of false, true"),
    ("a batch's name in a stream", True, IDS, "'writeId' is of a batch, and this is a stream"),
    ("a stream's name in a batch", False, {"sinkId": "a"}, "'sinkId' is of a stream, and this is a batch"),
    ("an override of streams", False, {"firstBatch": "7"}, "'firstBatch' is of a stream"),
    ("another query's name", True, {"sinkId": "spark/1"}, "must not begin with spark/ or write/"),
    ("another batch's name", True, {"sinkId": "write/1"}, "must not begin with spark/ or write/"),
    ("acks that lose rows", False, {"kafka.acks": "1"}, r"exactly-once needs kafka\.acks=all"),
    (
        "no idempotence",
        True,
        {"kafka.enable.idempotence": "false"},
        r"needs kafka\.acks=all, kafka\.enable\.idempotence",
    ),
    (
        "the client's timeout",
        False,
        {"kafka.transaction.timeout.ms": "1"},
        "cannot be set here: set transactionTimeout",
    ),
]


@pytest.mark.parametrize(
    ("is_stream", "given", "why"), [case[1:] for case in REFUSED_ONCE], ids=[case[0] for case in REFUSED_ONCE]
)
def test_refused_with_exactly_once(is_stream: bool, given: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_write_options({**ONCE, **given}, is_stream=is_stream)


def test_the_longest_timeout_fits_into_a_call() -> None:
    """The cluster refuses it by its own limit, with a text; a number that the call cannot hold has none."""
    once = parse_write_options({**ONCE, "transactionTimeout": str(2**31 - 1)}).once
    assert once is not None
    encode_BeginJointRequest(
        BeginJointRequest(group_id="g", run="r", sequence=0, token=b"t", timeout_ms=once.transaction_timeout_ms)
    )


def test_exactly_once_is_the_default() -> None:
    assert parse_write_options(ONCE).once == OnceOptions(transaction_timeout_ms=3_600_000)
    batch = parse_write_options({**ONCE, **IDS, "skipolder": "TRUE", "replayMismatch": "7", "transactionTimeout": "2h"})
    assert batch.once == OnceOptions(
        transaction_timeout_ms=7_200_000, write_id="nightly", write_version=7, skip_older=True, replay_mismatch=7
    )
    stream = parse_write_options(
        {**ONCE, "checkpointLocation": "/c/a", "sinkId": "s", "firstBatch": "57", "checkpointMoved": "file:///old/"},
        is_stream=True,
    )
    assert stream.once == OnceOptions(location="/c/a", sink_id="s", first_batch=57, checkpoint_moved="/old")


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("/c/a", "/c/a"),
        ("/c/a/", "/c/a"),
        ("file:/c/a", "/c/a"),
        ("file:///c/a/", "/c/a"),
        ("s3://bucket/c", "s3://bucket/c"),
        ("c", "c"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_a_location_is_the_same_however_it_is_spelled(given: str, plain: str) -> None:
    once = parse_write_options({**ONCE, "checkpointlocation": given}, is_stream=True).once
    assert once is not None and once.location == plain


@pytest.mark.parametrize(("transport", "client"), [("auto", "auto"), ("lane", "auto"), ("grpc", "grpc")])
def test_the_transport(transport: str, client: str) -> None:
    assert parse_write_options({**BASE, "transport": transport}).client["transport"] == client


def test_the_producer_is_idempotent_unless_acks_are_given_up() -> None:
    assert parse_options(ProducerOptions, parse_write_options(BASE).client, {}).idempotent
    assert parse_write_options(BASE).weakness == parse_write_options({**BASE, "kafka.acks": "-1"}).weakness == ""
    for acks in ("0", "1"):
        assert f"kafka.acks={acks}: rows are lost" in parse_write_options({**BASE, "kafka.acks": acks}).weakness


def test_the_page_has_every_option_and_no_other() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text()
    writing = page.partition("\n## Writing\n")[2].partition("\n## ")[0]
    tables = re.findall(r"^\| option \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", writing, re.MULTILINE)
    told = {name for table in tables for row in table.splitlines() for name in re.findall("`(.*?)`", row.split("|")[1])}
    own = {name for name in told if not name.startswith("kafka.")}
    assert own - {"checkpointLocation"} == set(NAMES.own) and "checkpointLocation" in own
    client = {name.removeprefix("kafka.").replace(".", "_") for name in told - own}
    assert len(client) > 5 and client <= set(NAMES.client)
