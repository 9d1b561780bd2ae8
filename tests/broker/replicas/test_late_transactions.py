"""Which partitions count as having a late transaction: Kafka's rule, by the producer of the oldest open one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jepsen.sim.machine.disk import SimDisk
from quorumlog.records import Record, encode_batch, headers
from quorumlog.records.control import EndTxnMarker, control_batch
from quorumlog_broker.replicas.late_transactions import LATE_BUFFER_MS, Opener, open_for_long
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

START_MS, MAX_MS = 1_700_000_000_000, 900_000
LATE_MS = MAX_MS + LATE_BUFFER_MS


def replica(*appended: tuple[int, str, int], is_leader: bool = True) -> Any:
    """appended: (producer, "data", "commit" or "abort", ms after the start)."""
    disk = SimDisk()
    disk.make_directory("/d")
    log = Log.open(disk, "/d/t-0", LogConfig(remembers_producers=True))
    for number, (producer, what, at_ms) in enumerate(appended):
        if what == "data":
            records = [Record(0, START_MS + at_ms, None, b"v", ())]
            data = encode_batch(
                records, producer_id=producer, producer_epoch=0, base_sequence=number, transactional=True
            )
        else:
            end = EndTxnMarker(what == "commit", 0)
            data = control_batch(
                [end], base_offset=0, timestamp_ms=START_MS + at_ms, producer_id=producer, producer_epoch=0
            )
        log.append(stamped_batches(data, headers(data), log.end_offset, 1))
    return SimpleNamespace(log=log, core=SimpleNamespace(is_leader=is_leader))


CASES: list[tuple[str, Any, int]] = [
    ("nothing was written", replica(), 0),
    ("one is open for too long", replica((1, "data", 0)), 1),
    ("its producer has written again", replica((1, "data", 0), (1, "data", 5_000)), 0),
    ("it was committed", replica((1, "data", 0), (1, "commit", 10)), 0),
    ("it was aborted", replica((1, "data", 0), (1, "abort", 10)), 0),
    ("a younger one beside it", replica((1, "data", 0), (2, "data", 5_000)), 1),
    ("the older one has ended", replica((1, "data", 0), (2, "data", 5_000), (1, "abort", 6_000)), 0),
    ("on a follower", replica((1, "data", 0), is_leader=False), 0),
    ("of a log that is not open", SimpleNamespace(log=None, core=SimpleNamespace(is_leader=True)), 0),
]


@rule("log 6.12")
@pytest.mark.parametrize(("one", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_late(one: Any, expected: int) -> None:
    assert len(open_for_long([one], START_MS + LATE_MS + 1, MAX_MS)) == expected
    assert open_for_long([one], START_MS + LATE_MS, MAX_MS) == []


def test_partitions_are_counted() -> None:
    late = [replica((1, "data", 0)) for _ in range(3)]
    assert open_for_long([*late, replica()], START_MS + 2 * LATE_MS, MAX_MS) == [Opener(1, 0)] * 3
