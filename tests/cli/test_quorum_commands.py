"""`quorum history` reads elections from files; `quorum verify` compares images at offsets that all brokers hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorumlog.records.control import KRaftVersion, LeaderChange, Voter, VoterEndpoint, Voters, control_batch
from quorumlog_cli.commands.cluster.quorum_verify import document, offsets_in_common
from quorumlog_cli.main import main
from quorumlog_cli.offline.metadata_log import DIRECTORY

TIME_MS = 1_700_000_000_000


@pytest.fixture
def metadata_log(tmp_path: Path) -> Path:
    directory = tmp_path / DIRECTORY
    directory.mkdir()
    joined = Voter(4, bytes([4]) * 16, (VoterEndpoint("INTERNAL", "h", 9094),), 0, 1)
    content = control_batch([LeaderChange(1, (1, 2, 3), (1, 3))], base_offset=0, timestamp_ms=TIME_MS, leader_epoch=1)
    content += control_batch([KRaftVersion(1), Voters((joined,))], base_offset=1, timestamp_ms=TIME_MS, leader_epoch=1)
    content += control_batch([LeaderChange(4, (4,), (4,))], base_offset=3, timestamp_ms=TIME_MS + 5, leader_epoch=7)
    (directory / f"{0:020d}.log").write_bytes(content)
    return directory


def test_history_lists_elections_and_voters(metadata_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "history", "--from", str(metadata_log), "-o", "json"]) == 0
    events = json.loads(capsys.readouterr().out)["events"]
    assert [(event["offset"], event["epoch"], event["event"], event["voters"]) for event in events] == [
        (0, 1, "elected", [1, 2, 3]),
        (1, 1, "kraft.version 1", []),
        (2, 1, "voters changed", [4]),
        (3, 7, "elected", [4]),
    ]
    assert (events[0]["leader"], events[0]["granted_by"]) == (1, [1, 3])


def test_history_for_people(metadata_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "history", "--from", str(metadata_log)]) == 0
    told = capsys.readouterr().out
    assert "node 1 elected by 1, 3" in told and "2023-11-14 22:13:20" in told and "voters changed" in told


def test_a_damaged_log_is_named(metadata_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = metadata_log / f"{0:020d}.log"
    damaged = bytearray(path.read_bytes())
    damaged[70] ^= 1
    path.write_bytes(damaged)
    assert main(["quorum", "history", "--from", str(metadata_log)]) == 4
    assert str(path) in capsys.readouterr().err


A, B = b"a" * 16, b"b" * 16


@pytest.mark.parametrize(
    ("images", "want"),
    [
        ({1: {5: A, 9: A}, 2: {5: A, 8: A}}, [5]),
        ({1: {5: A}, 2: {6: A}}, []),
        ({1: {5: A}, 2: {}}, []),
        ({}, []),
    ],
)
def test_only_offsets_of_all_brokers_are_compared(images: dict[int, dict[int, bytes]], want: list[int]) -> None:
    assert offsets_in_common(images) == want


def test_the_first_difference_is_told() -> None:
    images = {1: {5: A, 7: A, 9: B}, 2: {5: A, 7: B, 9: A}}
    found = document(images, [5, 7, 9])
    assert (found["agree"], found["offset"]) == (False, 7)
    assert [broker["state_hash"] for broker in found["brokers"]] == [A.hex(), B.hex()]


def test_agreement_is_told_at_the_last_offset() -> None:
    found = document({1: {5: A, 7: B}, 2: {5: A, 7: B, 8: A}}, [5, 7])
    assert (found["agree"], found["offset"], found["compared"]) == (True, 7, 2)
    assert [broker["newest"] for broker in found["brokers"]] == [7, 8]
