"""Plans and tasks of Spark's readers and writers against a node that asks who they are, without a session of Spark.

What Spark does with them is done here: a reader is pickled on the driver, and a copy reads.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import AuthenticationFailed
from quorumlog.spark.format.source import DefaultSource
from quorumlog.spark.load.job import Request, in_this_process, run_load
from quorumlog.spark.load.store import DirectoryStore
from quorumlog.spark.session import kept_connections
from quorumlog.spark.session.kept_connections import close_kept, kept_here
from quorumlog.spark.stream.group_listener import track
from tests.security.client.issuer_of_certificates import Authority
from tests.security.serving.secured_node import make_user, secured_node

CANARY, OTHER = 'c4nary"s3cret;', "another-s3cret"
MOST_S = 10.0  # of a refusal
ROWS = 40
VALUES = StructType([StructField("value", BinaryType())])
TOPIC = "orders"


@dataclass(frozen=True, slots=True)
class Secured:
    """options: of Spark, for its protected listener. plain: a client of its other one."""

    options: dict[str, str]
    plain: Cluster
    folder: Path
    own: Authority


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("node")
    own = Authority(folder, "own")
    more = (
        f"ssl.keystore.location={own.issue('node', hosts=('localhost',))}\n"
        "sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN\ntransaction.state.log.replication.factor=1\n"
    )
    with secured_node(folder, "SASL_SSL", more, grpc=True) as (node, address), Cluster(node.address) as plain:
        make_user(node.address, "ada", CANARY)
        make_user(node.address, "bob", OTHER)
        for topic in (TOPIC, "copy", "once"):
            plain.admin.create_topic(topic, 2, 1)
        with plain.producer() as producer:
            for number in range(ROWS):
                producer.send(TOPIC, b"%d" % number, partition=number % 2)
        tls = {
            "kafka.bootstrap.servers": address,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.ssl.truststore.location": str(own.path),
        }
        yield Secured(tls, plain, folder, own)


@pytest.fixture(autouse=True)
def begin_without_connections() -> Iterator[None]:
    close_kept()
    yield
    close_kept()


def of_user(name: str, password: str, folder: Path) -> dict[str, str]:
    file = folder / f"password of {name}"
    file.write_text(password)
    return {"kafka.sasl.username": name, "kafka.sasl.password": f"file:{file}"}


def source(given: dict[str, str]) -> Any:
    return DefaultSource({name.lower(): value for name, value in given.items()})


def rows_of(given: dict[str, str], folder: Path) -> list[int]:
    """As Spark reads: planned here, and read by copies where no file is."""
    reader = source({**given, "subscribe": TOPIC, "startingOffsets": "earliest"}).reader(VALUES)
    plan = pickle.dumps((reader, reader.partitions()))
    for file in folder.glob("password of *"):
        file.unlink()
    copy, parts = pickle.loads(plan)
    batches = [batch for part in parts for batch in copy.read(part)]
    return sorted(int(value) for batch in batches for value in batch.column(0).to_pylist())


@pytest.mark.parametrize("transport", ["auto", "grpc", "lane"])
def test_a_batch_is_read_where_no_file_is(secured: Secured, transport: str) -> None:
    given = {**secured.options, **of_user("ada", CANARY, secured.folder), "transport": transport}
    assert rows_of(given, secured.folder) == list(range(ROWS))
    assert rows_of({**given, **of_user("bob", OTHER, secured.folder)}, secured.folder) == list(range(ROWS))


def test_two_users_never_share_a_connection(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one process, which reads for both of them by turns."""
    lent: list[tuple[bytes, int]] = []
    take = kept_connections.KeptConnections.take

    def noted(self: Any, key: Any, open_one: Any) -> Any:
        found = take(self, key, open_one)
        lent.append((key.who, id(found)))
        return found

    monkeypatch.setattr(kept_connections.KeptConnections, "take", noted)
    for _ in range(3):
        for name, password in (("ada", CANARY), ("bob", OTHER)):
            given = {**secured.options, **of_user(name, password, secured.folder)}
            assert rows_of(given, secured.folder) == list(range(ROWS))
    users = {who: {number for whose, number in lent if whose == who} for who, _ in lent}
    ada, bob = users.values()
    assert not ada & bob and b"" not in users
    assert len(ada) < sum(who == next(iter(users)) for who, _ in lent), "they are kept for their own user"
    assert len(kept_here()) >= 2


def test_a_stream_is_read_and_keeps_its_beginning(secured: Secured) -> None:
    given = {**secured.options, **of_user("ada", CANARY, secured.folder), "subscribe": TOPIC}
    reader = source({**given, "startingOffsets": "earliest"}).streamReader(VALUES)
    pinned = source({**given, "pinId": "secured"}).streamReader(VALUES)
    try:
        start = reader.initialOffset()
        end = pinned.initialOffset()
        assert pinned.initialOffset() == end, "the pin is written and read by the same login"
        plan = pickle.dumps((reader, reader.partitions(start, end)))
        copy, parts = pickle.loads(plan)
        assert sum(batch.num_rows for part in parts for batch in copy.read(part)) == ROWS
        assert CANARY not in f"{start} {end} {parts} {[part.value for part in parts]} {vars(copy)}"
    finally:
        reader.stop()
        pinned.stop()


def test_a_table_is_read(secured: Secured) -> None:
    given = {**secured.options, **of_user("ada", CANARY, secured.folder), "table": "partitions"}
    made = source(given)
    reader = made.reader(made.schema())
    (part,) = reader.partitions()
    found = [row for batch in pickle.loads(pickle.dumps(reader)).read(part) for row in batch.to_pylist()]
    assert {row["topic"] for row in found} >= {TOPIC, "copy"}


def test_rows_are_written(secured: Secured) -> None:
    given = {**secured.options, **of_user("ada", CANARY, secured.folder), "topic": "copy", "delivery": "at-least-once"}
    writer = source(given).writer(VALUES, False)
    copy = pickle.loads(pickle.dumps(writer))
    done = copy.write(iter([pyarrow.record_batch({"value": pyarrow.array([b"1", b"2"], pyarrow.binary())})]))
    writer.commit([done])
    assert done.sent.rows == 2 and CANARY not in f"{done} {vars(writer)}"


def test_a_batch_is_written_once(secured: Secured) -> None:
    """By a joint transaction, which goes by gRPC, under the same login."""
    given = {**secured.options, **of_user("ada", CANARY, secured.folder), "topic": "once", "writeId": "w"}
    with pytest.warns(UserWarning, match="version 1 was written before"):
        for _ in range(2):
            writer = source({**given, "writeVersion": "1"}).writer(VALUES, False)
            copy = pickle.loads(pickle.dumps(writer))
            done = copy.write(iter([pyarrow.record_batch({"value": pyarrow.array([b"1", b"2"], pyarrow.binary())})]))
            writer.commit([done])
            assert CANARY not in f"{done} {vars(writer)}"
    reader = secured.plain.consumer("once", start="earliest", stop="latest", isolation_level="read_committed")
    assert sorted(one.value for one in reader) == [b"1", b"2"]


def test_a_load_reads_as_its_profile_says(secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its options are a command's, and reach tasks inside of a function."""
    monkeypatch.setenv("CANARY", CANARY)
    client = {name.removeprefix("kafka.").replace(".", "_"): value for name, value in secured.options.items()}
    wanted = Request(topics=(TOPIC,), client={**client, "sasl_username": "ada", "sasl_password": "env:CANARY"})

    def far_away(task: Any, ranges: Any) -> Any:
        assert CANARY not in repr(task)
        sent = pickle.dumps(task)
        with monkeypatch.context() as there:
            there.delenv("CANARY")
            yield from in_this_process(pickle.loads(sent), ranges)

    outcome = run_load(wanted, DirectoryStore(str(tmp_path)), far_away)[-1]
    assert outcome.commit is not None and sum(file.rows for file in outcome.commit.files) == ROWS


# --- refusals, on the driver


def refused(secured: Secured, **more: str) -> dict[str, str]:
    return {**secured.options, "kafka.sasl.username": "ada", "kafka.sasl.password": "wr0ng-s3cret"} | {
        f"kafka.{name.replace('_', '.')}": value for name, value in more.items()
    }


WAYS = ["batch", "stream", "write", "stream write"]


def driven(way: str, given: dict[str, str]) -> None:
    """What Spark does on the driver before the first task."""
    of_reads = {"subscribe": TOPIC, "startingOffsets": "earliest"}
    match way:
        case "batch":
            source({**given, **of_reads}).reader(VALUES).partitions()
        case "stream":
            reader = source({**given, **of_reads}).streamReader(VALUES)
            try:
                reader.initialOffset()
                reader.latestOffset()
            finally:
                reader.stop()
        case "write":
            source({**given, "topic": "copy"}).writer(VALUES, False)
        case "stream write":
            source({**given, "topic": "copy"}).streamWriter(VALUES, False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", ["password", "authority"])
def test_a_refusal_ends_on_the_driver(secured: Secured, tmp_path: Path, way: str, what: str) -> None:
    given = refused(secured)
    if what == "authority":
        given["kafka.ssl.truststore.location"] = str(Authority(tmp_path, "foreign").path)
    began_s = time.monotonic()
    with warnings.catch_warnings(record=True) as told, pytest.raises(AuthenticationFailed) as refusal:
        warnings.simplefilter("always")
        driven(way, given)
    assert time.monotonic() - began_s < MOST_S
    assert ("check sasl_username, sasl_password" if what == "password" else "certificate") in str(refusal.value)
    assert "wr0ng-s3cret" not in f"{refusal.value!r} {[str(one.message) for one in told]}"
    assert [str(one.message) for one in told if "in clear" in str(one.message)], "the literal is warned of"


def test_a_listener_of_queries_takes_the_same_options(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", CANARY)
    listeners: list[Any] = []
    session: Any = SimpleNamespace(streams=SimpleNamespace(addListener=listeners.append))
    client = {name.removeprefix("kafka."): value for name, value in secured.options.items()}
    made = track(session, "g", **{**client, "sasl.username": "ada", "sasl.password": "env:CANARY"})
    made.close()
    assert listeners == [made]
