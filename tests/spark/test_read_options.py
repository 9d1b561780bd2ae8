"""Options of a batch read: Kafka's names are accepted; typos and unsupported options are refused by name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.client.errors import ConfigError
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.spark.read.options import Subscription, parse_read_options, parse_stream_options
from quorumlog.spark.read.places import TimePlace, parse_assign, parse_place

BASE = {"bootstrap.servers": "h:1", "subscribe": "orders"}


def test_defaults_are_those_of_kafkas_source() -> None:
    options = parse_read_options(BASE)
    assert (options.starting, options.ending, options.fail_on_data_loss) == (EARLIEST, LATEST, True)
    assert options.subscription == Subscription(names=("orders",))
    assert not options.shape.include_headers


def test_names_arrive_in_lower_case_and_with_kafkas_prefix() -> None:
    options = parse_read_options(
        {
            "kafka.bootstrap.servers": "h:1,g:2",
            "subscribepattern": "ord.*",
            "startingoffsets": '{"orders":{"0":-2,"1":7}}',
            "failondataloss": "false",
            "includeheaders": "TRUE",
            "kafka.fetch.max.bytes": "1000",
            "kafkaconsumer.polltimeoutms": "77",
        }
    )
    assert options.client["bootstrap_servers"] == "h:1,g:2"
    assert options.client["fetch_max_bytes"] == "1000"
    assert options.subscription == Subscription(pattern="ord.*")
    assert options.starting == {("orders", 0): EARLIEST, ("orders", 1): 7}
    assert (options.fail_on_data_loss, options.shape.include_headers, options.poll_timeout_ms) == (False, True, 77)


REFUSED = [
    ("a typo", {"startingOfsets": "earliest"}, "did you mean 'startingOffsets'"),
    ("a typo of the client's", {"kafka.fetch.max.byte": "1"}, "did you mean 'kafka.fetch.max.bytes'"),
    ("unlike any option", {"zzz": "1"}, "known options: bootstrap.servers"),
    ("not supported yet", {"wire": "arrow"}, "not supported yet"),
    ("bytes of a stream", {"maxBytesPerTrigger": "9m"}, "is for streams"),
    ("no bytes", {"maxBytesPerPartition": "0m"}, "such as 64m"),
    ("more bytes than a broker knows", {"maxBytesPerPartition": "9999999999g"}, "at most 9223372036854775807"),
    ("more rows than Spark knows", {"maxRecordsPerPartition": "9" * 20}, "at most 9223372036854775807"),
    ("of streams", {"maxOffsetsPerTrigger": "9"}, "is for streams"),
    ("a path", {"path": "orders"}, "without a path"),
    ("two subscriptions", {"assign": '{"orders":[0]}'}, "exactly one of"),
    ("no topic", {"subscribe": " , "}, "names no topic"),
    ("latest as the start", {"startingOffsets": "latest"}, "always be empty"),
    ("latest in the start", {"startingOffsets": '{"orders":{"0":-1}}'}, "always be empty"),
    ("earliest as the end", {"endingOffsets": "earliest"}, "always be empty"),
    ("no JSON", {"startingOffsets": "soon"}, "is not JSON"),
    ("no offset", {"startingOffsets": '{"orders":{"0":-3}}'}, "-2 for earliest"),
    ("no time stamp", {"startingTimestamp": "yesterday"}, "ISO 8601"),
    ("a time before 1970", {"endingTimestamp": "1969-12-31"}, "not a time"),
    ("a time that is a list", {"startingOffsetsByTimestamp": '{"orders":[1]}'}, "object of partitions"),
    ("no strategy", {"startingTimestamp": "1", "startingOffsetsByTimestampStrategy": "first"}, "one of error, latest"),
    ("no format", {"keyFormat": "avro"}, "one of binary, utf8, int, long"),
    ("no columns", {"columns": " , "}, "names no column"),
    ("no number of tasks", {"minPartitions": "0"}, "positive"),
    ("no truth", {"failOnDataLoss": "maybe"}, "true or false"),
    ("no time", {"kafkaConsumer.pollTimeoutMs": "0"}, "positive"),
    ("no transport", {"transport": "kafka"}, "transport must be one of auto, grpc, lane"),
    ("no chunk ahead", {"prefetch": "0"}, "prefetch must be a positive"),
    ("too many chunks ahead", {"prefetch": "17"}, "prefetch must be 1 to 16 chunks: 17"),
    ("the client's transport", {"kafka.transport": "grpc"}, "cannot be set here: set transport"),
    ("the client's chunks ahead", {"prefetch_chunks": "3"}, "cannot be set here: set prefetch"),
    ("the client's group without a prefix", {"group.id": "g"}, "groupIdPrefix"),
    ("no isolation", {"isolationLevel": "serializable"}, "isolation_level"),
    ("a client value", {"kafka.fetch.max.bytes": "many"}, "fetch_max_bytes"),
]


@pytest.mark.parametrize(("extra", "text"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_impossible_options_are_refused(extra: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text.replace("(", "\\(")):
        parse_read_options({**BASE, **extra})


def test_a_group_id_is_a_name_in_the_brokers_logs() -> None:
    """As in Kafka's source it goes before the prefix; nothing is committed for it."""
    client = parse_read_options({**BASE, "kafka.group.id": "mine", "groupIdPrefix": "prefix"}).client
    assert client["client_id"] == "mine" and "group_id" not in client


@pytest.mark.parametrize("name", ["isolationLevel", "kafka.isolation.level"])
def test_the_isolation_is_the_clients(name: str) -> None:
    assert parse_read_options({**BASE, name: "read_committed"}).client["isolation_level"] == "read_committed"
    assert parse_read_options({**BASE, name: "read_uncommitted"}).client["isolation_level"] == "read_uncommitted"
    assert parse_read_options(BASE).client["isolation_level"] == "read_committed"  # another default than Kafka's source


@pytest.mark.parametrize(
    ("transport", "client"),
    [("auto", ("auto", "auto")), ("GRPC", ("grpc", "true")), ("lane", ("auto", "false")), ("", ("auto", "auto"))],
)
def test_the_transport_of_tasks(transport: str, client: tuple[str, str]) -> None:
    given = {**BASE, "prefetch": "5", **({"transport": transport} if transport else {})}
    for options in (parse_read_options(given).client, parse_stream_options(given).client):
        assert (options["transport"], options["stream_chunks"], options["prefetch_chunks"]) == (*client, 5)
    assert parse_read_options(BASE).client["prefetch_chunks"] == 2


def test_the_cluster_and_a_subscription_are_required() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        parse_read_options({"subscribe": "orders"})
    with pytest.raises(ConfigError, match="found none"):
        parse_read_options({"bootstrap.servers": "h:1"})
    for pattern, text in (("(", "not a regular expression"), (" ", "subscribePattern is empty")):
        with pytest.raises(ConfigError, match=text):
            parse_read_options({"bootstrap.servers": "h:1", "subscribePattern": pattern})


def test_spaces_around_a_pattern_are_no_part_of_it() -> None:
    """As in Kafka's source: they would match no topic, without an error."""
    options = parse_read_options({"bootstrap.servers": "h:1", "subscribePattern": " ord.* "})
    assert options.subscription == Subscription(pattern="ord.*")


def test_assign_lists_partitions() -> None:
    assert parse_assign('{"b":[2,0,2],"a":[1]}') == {"b": (0, 2), "a": (1,)}
    for text in ("{}", "[]", '{"a":[]}', '{"a":1}', '{"a":[-1]}', '{"a":[true]}'):
        with pytest.raises(ConfigError):
            parse_assign(text)


@given(st.dictionaries(st.tuples(st.text(min_size=1), st.integers(0, 99)), st.integers(0, 2**62), min_size=1))
def test_offsets_are_read_from_json(offsets: dict[tuple[str, int], int]) -> None:
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, {})[str(partition)] = offset
    assert parse_place("startingOffsets", json.dumps(topics)) == offsets


TIMES = [
    ("a number", {"startingTimestamp": "1700000000123"}, 1_700_000_000_123),
    ("ISO 8601", {"startingTimestamp": "2023-11-14T22:13:20.123Z"}, 1_700_000_000_123),
    ("another zone", {"startingTimestamp": "2023-11-15T00:13:20.123+02:00"}, 1_700_000_000_123),
    ("without a zone it is UTC", {"startingTimestamp": "2023-11-14T22:13:20.123"}, 1_700_000_000_123),
    (
        "of each partition",
        {"startingOffsetsByTimestamp": '{"orders":{"0":5,"1":"1970-01-01T00:00:01Z"}}'},
        {("orders", 0): 5, ("orders", 1): 1_000},
    ),
    (
        "for all, beside those of each partition, and offsets",
        {"startingTimestamp": "7", "startingOffsetsByTimestamp": '{"orders":{"0":5}}', "startingOffsets": "earliest"},
        7,
    ),
]


@pytest.mark.parametrize(("given", "times_ms"), [c[1:] for c in TIMES], ids=[c[0] for c in TIMES])
def test_a_start_may_be_a_time(given: dict[str, str], times_ms: object) -> None:
    place = parse_read_options({**BASE, **given}).starting
    assert isinstance(place, TimePlace)
    assert place.times_ms == times_ms and not place.latest_if_none


def test_who_has_no_record_after_a_time() -> None:
    """At the start it is an error unless the user says otherwise, as in Kafka's source; an end is then the last one."""
    times = {"startingTimestamp": "1", "endingTimestamp": "2", "startingOffsetsByTimestampStrategy": "latest"}
    options = parse_read_options({**BASE, **times})
    assert isinstance(options.starting, TimePlace) and options.starting.latest_if_none
    options = parse_read_options({**BASE, "endingOffsetsByTimestamp": '{"orders":{"0":5}}'})
    assert isinstance(options.ending, TimePlace) and options.ending.latest_if_none
