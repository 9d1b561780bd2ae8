"""A backup of a stranger's hand, and words of a restore that cannot be meant: refused before anything is written."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.backup.manifest import BackedUpPartition, BadBackup, Manifest, read_manifest
from quorumlog.ids import format_uuid
from quorumlog_cli.commands.cluster import backup
from quorumlog_cli.commands.cluster.backup_writing import BackupFolder
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_quorum.metadata.image import Image
from quorumlog_server.restoring.backup_folder import check_partitions

TOPIC_ID = bytes(15) + b"\1"


def manifest() -> Manifest:
    one = BackedUpPartition(topic="t", index=0, start=0, end=3, size=70, sha256="00", last_epoch=-1, max_producer_id=-1)
    return Manifest(
        cluster_id=format_uuid(TOPIC_ID),
        metadata_offset=9,
        metadata_sha256="00",
        began_ms=1,
        cut_ms=2,
        ended_ms=3,
        held_ms=1,
        made_by="a test",
        topics={"t": TOPIC_ID},
        partitions=(one,),
        left_out={},
    )


def sealed(edit: Callable[[dict[str, Any]], object]) -> str:
    """A manifest that somebody has edited, with the checksum that it then must have."""
    content = json.loads(manifest().to_json())
    del content["sha256"]
    edit(content)
    told = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "sha256": told})


def of_partition(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: content["partitions"][0].update(changes)


def renamed(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda content: (content.update(topics={name: format_uuid(TOPIC_ID)}), of_partition(topic=name)(content))


def test_what_was_only_sealed_again_is_read() -> None:
    assert read_manifest(sealed(lambda content: None)) == manifest()


HOSTILE = {
    "a name that leaves the folder": renamed("../../../../evil"),
    "an absolute name": renamed("/etc/evil"),
    "the log of the quorum": renamed("__cluster_metadata"),
    "records of no topic": of_partition(topic="other"),
    "a negative number": of_partition(index=-1),
    "a number as text": of_partition(index="0"),
    "a size as text": of_partition(size="70"),
    "an end before the start": of_partition(start=4),
    "an epoch above its field": of_partition(last_epoch=2**31),
    "a producer id above its field": of_partition(max_producer_id=2**63),
    "a partition twice": lambda content: content["partitions"].append(content["partitions"][0]),
    "topics as a list": lambda content: content.update(topics=[]),
}


@pytest.mark.parametrize("edit", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_manifest_that_no_backup_writes_is_refused(edit: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(BadBackup):
        read_manifest(sealed(edit))


def test_a_manifest_beside_other_metadata_is_refused() -> None:
    with pytest.raises(BadBackup, match="differ in t-0"):
        check_partitions(manifest(), Image())


def test_no_backup_is_made_inside_a_directory_of_a_node(tmp_path: Path) -> None:
    """A node deletes the directory of a topic that is deleted, with all that is in it."""
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "meta.properties").touch()
    (tmp_path.parent / "link").symlink_to(tmp_path / "orders-0")
    for place in (tmp_path / "orders-0" / "monday", tmp_path.parent / "link"):
        with pytest.raises(CliError, match="a node's own"):
            BackupFolder.make(place)
    assert not any((tmp_path / "orders-0").iterdir())


def test_a_backup_whose_disk_is_full_says_where_and_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def connected(*_target: Any, **_options: Any) -> Iterator[None]:
        yield None

    async def full(*_arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = SimpleNamespace(bootstrap_servers="127.0.0.1:1", options={})
    for name, fake in (("connected", connected), ("find_target", lambda *_: target), ("_begin", full)):
        monkeypatch.setattr(backup, name, fake)
    assert main(["backup", "create", str(tmp_path / "monday")]) == Exit.FAILED
    said = capsys.readouterr().err
    assert f"{tmp_path / 'monday'}: No space left" in said and "--resume goes on" in said


SECRET = "s" * 43


@pytest.mark.parametrize(
    ("arguments", "secret", "said"),
    [
        (("-t", "abc", "--nodes", "1"), SECRET, "-t abc"),
        (("-t", format_uuid(TOPIC_ID), "--nodes", "1"), "", "0 characters"),
        (("-t", format_uuid(TOPIC_ID), "--nodes", "1,,2"), SECRET, "'1,,2'"),
        (("-t", format_uuid(TOPIC_ID), "--nodes=-1,1"), SECRET, "'-1,1'"),
    ],
    ids=["no id", "no secret", "no number", "negative"],
)
def test_a_node_is_restored_with_an_id_and_a_secret_that_storage_format_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], secret: str, said: str
) -> None:
    (tmp_path / "secret").write_text(secret)
    words = ["restore", "node", str(tmp_path), "-c", "c", "--secret-file", str(tmp_path / "secret"), *arguments]
    assert main(words) == Exit.USAGE
    assert said in capsys.readouterr().err
