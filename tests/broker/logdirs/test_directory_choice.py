"""Where a replica lies: where it was found, where the metadata says, or in the least loaded directory."""

from __future__ import annotations

import pytest

from quorumlog.ids import Uuid
from quorumlog_broker.logdirs.directory_choice import DirectoryLoad, choose_directory
from quorumlog_quorum.metadata.registration import LOST, UNASSIGNED
from tests.rules import rule

D1, D2, OTHER = bytes([21]) * 16, bytes([22]) * 16, bytes([23]) * 16
PLACES = [
    ("where the metadata says", D2, None, {D1: 0, D2: 5}, False, D2),
    ("where its log was found, whatever the metadata says", D2, D1, {D1: 0, D2: 0}, False, D1),
    ("found on a disk that has failed since", UNASSIGNED, D1, {D2: 0}, True, None),
    ("an older copy was found, beside the disk that has failed", OTHER, D1, {D1: 0}, True, None),
    ("found where the metadata says, beside a disk that has failed", D1, D1, {D1: 0}, True, D1),
    ("found, and the disk that the metadata names was taken out", OTHER, D1, {D1: 0}, False, D1),
    ("nowhere yet: the emptiest", UNASSIGNED, None, {D1: 3, D2: 2}, False, D2),
    ("nowhere yet, equal: the first by id", UNASSIGNED, None, {D2: 2, D1: 2}, False, D1),
    ("in a directory that is lost", LOST, None, {D1: 0}, True, None),
    ("lost, and the disk was replaced", LOST, None, {D1: 0}, False, D1),
    ("lost, and found again", LOST, D1, {D1: 0, D2: 0}, False, D1),
    ("lost, and found again beside a disk that has failed", LOST, D1, {D1: 0}, True, D1),
    ("in one that is not here, perhaps the offline one", OTHER, None, {D1: 0}, True, None),
    ("in one that is not here, and none is offline", OTHER, None, {D1: 0}, False, D1),
    ("no directory at all", UNASSIGNED, None, {}, True, None),
]


@rule("kraft 10.7", "storage 7.4", "storage 7.5", "log 8.1")
@pytest.mark.parametrize(
    ("assigned", "found", "online", "offline", "want"), [c[1:] for c in PLACES], ids=[c[0] for c in PLACES]
)
def test_where_a_replica_lies(
    assigned: Uuid, found: Uuid | None, online: dict[Uuid, int], offline: bool, want: Uuid | None
) -> None:
    loads = {directory: DirectoryLoad(count) for directory, count in online.items()}
    assert choose_directory(assigned, found, loads, offline) == want


LOADS = [
    ("equal disks: by count", {D1: (3, 0.5), D2: (2, 0.5)}, D2),
    ("equal counts: by bytes", {D1: (2, 0.6), D2: (2, 0.5)}, D2),
    ("the fuller one has fewer replicas", {D1: (10, 0.1), D2: (5, 0.9)}, D1),
    ("a little fuller, and many fewer replicas", {D1: (10, 0.1), D2: (1, 0.2)}, D2),
    ("none has replicas: by bytes", {D1: (0, 0.2), D2: (0, 0.1)}, D2),
    ("one is short of space", {D1: (9, 0.9), D2: (0, 0.0, True)}, D1),
    ("one is cordoned", {D1: (9, 0.9), D2: (0, 0.0, False, True)}, D1),
    ("the other one is short of space", {D1: (9, 0.9, True), D2: (0, 0.0, False, True)}, D1),
    ("both are cordoned", {D1: (9, 0.9, False, True), D2: (0, 0.0, False, True)}, D2),
    ("both are short of space", {D1: (2, 0.9, True), D2: (0, 0.9, True)}, D2),
]


@rule("storage 7.4", "log 8.5")
@pytest.mark.parametrize(("online", "want"), [c[1:] for c in LOADS], ids=[c[0] for c in LOADS])
def test_a_new_log_goes_by_count_and_bytes(online: dict[Uuid, tuple[int, float]], want: Uuid) -> None:
    loads = {directory: DirectoryLoad(*load) for directory, load in online.items()}
    assert choose_directory(UNASSIGNED, None, loads, False) == want
