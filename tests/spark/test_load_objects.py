"""A load into an object store: conditional PUTs, two loaders, `kill -9`, and errors that say what to do."""

from __future__ import annotations

import pickle
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.spark.load import object_store
from quorumlog.spark.load import store as stores
from quorumlog.spark.load.folder import SUFFIX
from quorumlog.spark.load.job import Request, in_this_process, run_load
from quorumlog.spark.load.object_store import NoConditionalPut, ObjectStore, StoreFailed
from quorumlog.spark.load.store import open_store
from quorumlog.spark.load.verifying import verify
from quorumlog.testing import LocalCluster
from tests.spark.object_server import s3
from tests.spark.test_load import once
from tests.spark.test_load_kills import ENDS, fill, start, wait_for_death

__all__ = ["s3"]
RACERS = 8


@pytest.fixture
def place(s3: str) -> str:
    return f"{s3}/{uuid4().hex}"


@pytest.fixture
def store(place: str) -> ObjectStore:
    opened = open_store(place)
    assert isinstance(opened, ObjectStore)
    return opened


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("load") / "cluster", nodes=1) as made:
        made.client.admin.create_topic("orders", len(ENDS), 1)
        fill(made, "orders", ENDS)
        yield made


def load(cluster: LocalCluster, store: ObjectStore, **wanted: Any) -> None:
    client = {"bootstrap_servers": cluster.bootstrap_servers}
    run_load(Request(topics=("orders",), client=client, **wanted), store, in_this_process)


def offsets(store: ObjectStore) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for name in store.list(""):
        if name.endswith(SUFFIX):
            with store.local_copy(name) as local:
                table = pq.read_table(local, columns=["partition", "offset"])
                found.update(zip(*table.to_pydict().values(), strict=True))
    return found


def test_names_are_created_once_and_files_replaced(store: ObjectStore, tmp_path: Path) -> None:
    store.prove()
    assert store.list("") == [] and store.read("a/b") is None and store.size("a/b") is None
    assert store.create("a/b-1.json", b"one") and not store.create("a/b-1.json", b"two")
    assert store.read("a/b-1.json") == b"one" and store.size("a/b-1.json") == 3
    (tmp_path / "file").write_bytes(b"four")
    assert not store.put_file("a/b-1.json", tmp_path / "file", replaces=False)
    assert store.put_file("a/b-1.json", tmp_path / "file", replaces=True)
    assert store.list("a/b") == store.list("") == ["a/b-1.json"] and store.list("a/c") == []
    again = pickle.loads(pickle.dumps(store))
    with again.local_copy("a/b-1.json") as local, again.local_copy("a/c") as none:
        assert local is not None and local.read_bytes() == b"four" and none is None


def test_of_many_who_create_a_name_one_wins(store: ObjectStore) -> None:
    won: list[int] = []
    racers = [
        threading.Thread(target=lambda i=i: won.append(i) if store.create("plan", b"%d" % i) else None)
        for i in range(RACERS)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert [b"%d" % i for i in won] == [store.read("plan")]


def test_a_large_file_is_looked_for_first(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "MAX_CONDITIONAL_BYTES", 2)
    (tmp_path / "file").write_bytes(b"four")
    assert store.put_file("a", tmp_path / "file", replaces=False)
    assert not store.put_file("a", tmp_path / "file", replaces=False)


def test_loads_go_on_and_again_and_are_verified(cluster: LocalCluster, store: ObjectStore) -> None:
    load(cluster, store, rows_per_file=30, partition_by="date(timestamp)")
    before = store.list("")
    load(cluster, store, start="0")
    assert [name for name in store.list("") if name.endswith(SUFFIX)] == [n for n in before if n.endswith(SUFFIX)]
    assert offsets(store) == once(*ENDS)
    report = verify(store)
    assert (report.commits, report.rows, report.faults) == (2, sum(ENDS), ())


@pytest.mark.parametrize("strike", [("create", 1, "after"), ("put_file", 3, "after"), ("create", 2, "before")])
def test_a_killed_load_is_done_again(cluster: LocalCluster, store: ObjectStore, strike: Any) -> None:
    wait_for_death(start(cluster, store.address, *strike))
    assert max(offsets(store).values(), default=1) == 1
    load(cluster, store, rows_per_file=7)
    assert offsets(store) == once(*ENDS) and verify(store).faults == ()


def test_a_store_that_ignores_the_condition_is_refused(
    cluster: LocalCluster, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ObjectStore, "_created", lambda self, name, data: True)
    with pytest.raises(NoConditionalPut, match="ignores the condition"):
        load(cluster, store)
    assert store.list("") == []


def test_errors_say_where_to_look(s3: str, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(StoreFailed, match="Look at the address, and at the credentials"):
        ObjectStore(f"{s3}-that-is-not-there/x").list("")
    monkeypatch.setattr(object_store, "MAX_RETRIES", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(StoreFailed, match=r"s3://lake/x: .* the credentials"):
        ObjectStore(f"{s3}/x").prove()
    monkeypatch.setattr(stores, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'quorumlog\[lake\]'"):
        open_store("s3://lake")
