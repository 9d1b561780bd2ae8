"""A log directory: its owner, its lock, its content, and whether it was closed cleanly."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from storage_samples import batch, disk_with_data

from jepsen.sim.machine.disk import SimDisk
from quorumlog.cluster_incarnation import ClusterIncarnation
from quorumlog_storage.directory.directory import (
    CLEAN_SHUTDOWN,
    AlreadyFormatted,
    CaseInsensitive,
    CleanShutdown,
    LockedDirectory,
    NotFormatted,
    format_directory,
    read_meta,
)
from quorumlog_storage.directory.meta_properties import MetaProperties, WrongDirectory, check_directories
from quorumlog_storage.directory.partition_metadata import (
    BadPartitionMetadata,
    parse_partition_metadata,
    read_topic_id,
    write_unsynced_topic_id,
)
from quorumlog_storage.files.disk import DirectoryLocked
from quorumlog_storage.files.properties import BadProperties
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

META = MetaProperties("c1", 3, bytes(range(16)))
UNIQUE = bytes(range(16, 32))


def formatted() -> SimDisk:
    disk = disk_with_data()
    format_directory(disk, "/data/d", META, "today")
    return disk


@rule("storage 10.10")
def test_a_format_is_durable_kafkas_text_and_not_repeated() -> None:
    disk = formatted()
    disk.crash(random.Random(1))
    assert disk.read_bytes("/data/d/meta.properties") == (
        b"#\n#today\ncluster.id=c1\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\nnode.id=3\nversion=1\n"
    )
    assert disk.list("/data/d") == ["meta.properties"]
    assert read_meta(disk, "/data/d") == META
    with pytest.raises(AlreadyFormatted, match="use an empty directory"):
        format_directory(disk, "/data/d", META)


def test_a_case_insensitive_file_system_is_refused() -> None:
    with pytest.raises(CaseInsensitive):
        format_directory(SimDisk(case_insensitive=True), "/d", META)


@rule("storage 7.2", "log 8.6")
def test_one_node_holds_a_directory() -> None:
    disk = formatted()
    held = LockedDirectory.open(disk, "/data/d")
    with pytest.raises(DirectoryLocked):
        LockedDirectory.open(disk, "/data/d")
    held.close(None)
    LockedDirectory.open(disk, "/data/d")


def test_a_directory_without_its_file_is_named() -> None:
    with pytest.raises(NotFormatted, match="quorumlog storage format"):
        LockedDirectory.open(disk_with_data(), "/data")


OTHER = replace(META, directory_id=UNIQUE)
RECOVERED = replace(META, incarnation=ClusterIncarnation(1, b"\1" * 16))


@rule("kraft 13.2")
def test_the_clusters_incarnation_is_kept_and_absent_means_none() -> None:
    content = RECOVERED.render()
    assert b"cluster.incarnation=1.AQEBAQEBAQEBAQEBAQEBAQ\n" in content and b"incarnation" not in META.render()
    assert MetaProperties.parse("/m", content) == RECOVERED
    with pytest.raises(BadProperties, match=r"cluster\.incarnation is not a cluster incarnation"):
        MetaProperties.parse("/m", content.replace(b"=1.", b"=one."))


@rule("storage 7.3")
@pytest.mark.parametrize("number", [0, 1, 2, 99])
def test_a_reserved_directory_id_is_refused(number: int) -> None:
    reserved = replace(META, directory_id=number.to_bytes(16, "big"))
    with pytest.raises(BadProperties, match="reserved"):
        MetaProperties.parse("/m", reserved.render())


TOGETHER = [
    ("one id twice", [("/a", META), ("/b", META)], "remove the copy"),
    ("two clusters", [("/a", META), ("/b", replace(OTHER, cluster_id="c2"))], "/b belongs to cluster c2"),
    ("another node", [("/a", META), ("/b", replace(OTHER, node_id=9))], "/b belongs to node 9"),
    (
        "another life of the cluster",
        [("/a", RECOVERED), ("/b", OTHER)],
        "/b is of cluster incarnation 0, /a of 1.*recovery of this node was interrupted, run it again",
    ),
]


@rule("storage 7.3")
@pytest.mark.parametrize(("found", "text"), [c[1:] for c in TOGETHER], ids=[c[0] for c in TOGETHER])
def test_directories_must_belong_together(found: list[tuple[str, MetaProperties]], text: str) -> None:
    with pytest.raises(WrongDirectory, match=text):
        check_directories(found, 3, None)


@rule("log 8.11")
def test_directories_that_belong_together() -> None:
    check_directories([("/a", META), ("/b", OTHER)], 3, "c1")
    with pytest.raises(WrongDirectory):
        check_directories([("/a", META)], 3, "other")
    check_directories([], 3, None)


@rule("storage 3.1", "log 2.1")
def test_the_clean_marker_is_gone_before_anything_is_loaded() -> None:
    disk = formatted()
    assert LockedDirectory.open(disk, "/data/d").clean_shutdown is None
    disk.kill()
    LockedDirectory.open(disk, "/data/d").close(broker_epoch=12)
    assert disk.read_bytes(f"/data/d/{CLEAN_SHUTDOWN}") == b'{"version":0,"brokerEpoch":12}'
    disk.crash(random.Random(1))
    assert LockedDirectory.open(disk, "/data/d").clean_shutdown == CleanShutdown(12)
    disk.crash(random.Random(1))
    assert LockedDirectory.open(disk, "/data/d").clean_shutdown is None


@pytest.mark.parametrize("seed", range(8))
def test_names_that_a_killed_process_left_in_memory_are_durable_before_they_are_relied_on(seed: int) -> None:
    """Killed before it had synced a new partition's name: the next process finds the partition, and stores into it."""
    disk = formatted()
    LockedDirectory.open(disk, "/data/d")
    disk.make_directory("/data/d/t-0")
    disk.kill()
    LockedDirectory.open(disk, "/data/d")
    log = Log.open(disk, "/data/d/t-0", LogConfig())
    log.append([batch(0, [b"acknowledged"])])
    log.sync()
    disk.crash(random.Random(seed))
    assert Log.open(disk, "/data/d/t-0", LogConfig()).end_offset == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"brokerEpoch":"x"}', b'{"brokerEpoch":true}', b"\xff"])
def test_an_unreadable_marker_loses_only_the_epoch(content: bytes) -> None:
    disk = formatted()
    disk.open(f"/data/d/{CLEAN_SHUTDOWN}", create=True).pwritev([content], 0)
    assert LockedDirectory.open(disk, "/data/d").clean_shutdown == CleanShutdown(-1)


def test_the_topic_id_of_a_partition() -> None:
    disk = formatted()
    assert read_topic_id(disk, "/data/d") is None
    write_unsynced_topic_id(disk, "/data/d", UNIQUE)
    assert read_topic_id(disk, "/data/d") == UNIQUE
    assert disk.read_bytes("/data/d/partition.metadata") == b"version: 0\ntopic_id: EBESExQVFhcYGRobHB0eHw"


@rule("storage 3.17")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0\n",
        b"version: -1\ntopic_id: EBESExQVFhcYGRobHB0eHw",
        b"version: 0\ntopic_id: " + b"A" * 22,
        b"version: 0\ntopic_id: EBESExQVFhcYGRobHB0eHwX",
        b"\xff\xfe",
    ],
)
def test_a_bad_topic_id_file_is_refused(content: bytes) -> None:
    with pytest.raises(BadPartitionMetadata):
        parse_partition_metadata("f", content)


BAD_META = [
    b"",
    b"version=0\nbroker.id=3\n",
    b"version=1\ncluster.id=c\nnode.id=3\n",
    b"version=1\ncluster.id=c\nnode.id=3\ndirectory.id=x\n",
    b"version=1\ncluster.id=c\nnode.id=-3\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n",
    b"version=1\ncluster.id=c\nnode.id=99999999999999\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n",
]


@pytest.mark.parametrize("content", BAD_META)
def test_bad_properties_are_refused(content: bytes) -> None:
    with pytest.raises(BadProperties):
        MetaProperties.parse("f", content)
