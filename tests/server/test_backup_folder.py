"""A backup that is not whole, or was changed: refused with what to do, and nothing of it is touched."""

from __future__ import annotations

import json
from collections.abc import Callable

import backup_world as world
import pytest
from backup_world import FOLDER
from hypothesis import given
from hypothesis import strategies as st

from jepsen.sim.machine.disk import SimDisk
from quorumlog.backup.manifest import MANIFEST, METADATA, RECORDS, UNFINISHED, VERSION, BadBackup, read_manifest
from quorumlog_server.restoring.backup_folder import read_backup, verify

DATA_FILE = f"{FOLDER}/{RECORDS}/data-0"


def verified(disk: SimDisk) -> int:
    return verify(read_backup(disk, FOLDER))


def test_a_whole_one() -> None:
    disk = world.made()
    assert verified(disk) == sum(len(b"".join(batches)) for batches in world.CONTENT.values())
    backup = read_backup(disk, FOLDER)
    assert read_manifest(backup.manifest.to_json()) == backup.manifest
    assert backup.manifest.open_transactions == {("hangs", world.OPEN): ["data-0", "other-0"]}


def without(name: str) -> Callable[[SimDisk], None]:
    return lambda disk: disk.unlink(f"{FOLDER}/{name}")


def cut(path: str, left: int) -> Callable[[SimDisk], None]:
    return lambda disk: world.put(disk, path, disk.read_bytes(path)[:left])


def flipped(path: str, at: int) -> Callable[[SimDisk], None]:
    def flip(disk: SimDisk) -> None:
        content = bytearray(disk.read_bytes(path))
        content[at] ^= 1
        world.put(disk, path, bytes(content))

    return flip


def unfinished(disk: SimDisk) -> None:
    disk.unlink(f"{FOLDER}/{MANIFEST}")
    world.put(disk, f"{FOLDER}/{UNFINISHED}", b"{}\n")


def other_records(disk: SimDisk) -> None:
    """Sound batches, which somebody has put in the place of the others."""
    world.put(disk, f"{FOLDER}/{RECORDS}/data-1", world.rows(0, "x"))


def fewer_batches(disk: SimDisk) -> None:
    world.put(disk, DATA_FILE, b"".join(world.CONTENT["data", 0][:-1]))


def twice(disk: SimDisk) -> None:
    world.put(disk, DATA_FILE, b"".join(world.CONTENT["data", 0] * 2))


CASES: list[tuple[str, Callable[[SimDisk], None], str]] = [
    ("no manifest", without(MANIFEST), "has no readable manifest.json: it is no whole backup"),
    ("interrupted", unfinished, "its backup was interrupted; finish it with quorumlog backup create --resume"),
    ("an empty manifest", cut(f"{FOLDER}/{MANIFEST}", 0), "manifest.json cannot be read"),
    ("half a manifest", cut(f"{FOLDER}/{MANIFEST}", 700), "manifest.json cannot be read"),
    ("no text", lambda disk: world.put(disk, f"{FOLDER}/{MANIFEST}", b"\xff\xfe"), "no readable manifest.json"),
    ("a list", lambda disk: world.put(disk, f"{FOLDER}/{MANIFEST}", b"[]"), "manifest.json cannot be read"),
    ("a change", lambda disk: world.change_manifest(disk, "cluster_id", "x"), "was changed after it was written"),
    ("no id", lambda disk: world.change_manifest(disk, "topics", {"data": "?"}), "was changed after it was written"),
    (
        "a later version",
        lambda disk: world.change_manifest(disk, "version", VERSION + 1),
        f"has version {VERSION + 1}, this software reads {VERSION}: upgrade it",
    ),
    ("no metadata", without(METADATA), "metadata.checkpoint is missing"),
    ("other metadata", flipped(f"{FOLDER}/{METADATA}", 90), "metadata.checkpoint is not what manifest.json says"),
    ("a partition is missing", without(f"{RECORDS}/other-0"), "records/other-0 is missing"),
    ("a torn batch", cut(DATA_FILE, 200), "records/data-0 at byte"),
    ("less than a header", cut(DATA_FILE, 20), "records/data-0 at byte 0"),
    ("an empty file", cut(DATA_FILE, 0), "records/data-0 is not what manifest.json says"),
    ("a bit", flipped(DATA_FILE, 150), "records/data-0 at byte"),
    ("other records", other_records, "records/data-1 is not what manifest.json says"),
    ("fewer batches", fewer_batches, "records/data-0 is not what manifest.json says"),
    ("all twice", twice, "records/data-0 at byte .*: offset 0 where 5 is next"),
]


@pytest.mark.parametrize(("damage", "says"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_refused(damage: Callable[[SimDisk], None], says: str) -> None:
    disk = world.made()
    damage(disk)
    before = {path: disk.read_bytes(path) for path in files(disk)}
    with pytest.raises(BadBackup, match=says):
        verified(disk)
    assert {path: disk.read_bytes(path) for path in files(disk)} == before


def files(disk: SimDisk) -> list[str]:
    return [
        f"{folder}/{name}"
        for folder in (FOLDER, f"{FOLDER}/{RECORDS}")
        for name in disk.list(folder)
        if not disk.is_directory(f"{folder}/{name}")
    ]


@given(st.data())
def test_no_flipped_bit_of_any_file_passes(data: st.DataObject) -> None:
    """A bit of white space is no damage: the checksum is of what the manifest says."""
    disk = world.made()
    path = data.draw(st.sampled_from(files(disk)))
    content = bytearray(disk.read_bytes(path))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    if path.endswith(MANIFEST):
        try:
            if json.loads(content) == json.loads(disk.read_bytes(path)):
                return
        except ValueError:
            pass  # it has to be refused, as below
    world.put(disk, path, bytes(content))
    with pytest.raises(BadBackup):
        verified(disk)
