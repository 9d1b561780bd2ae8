"""What a stored batch knows of its header, and the bound of each isolation."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from quorumlog.records import Record, encode_batch, headers
from quorumlog.records.format.batch import Codec
from quorumlog_storage.rules.isolation import Isolation, upper_bound
from quorumlog_storage.segment.batch import StoredBatch, received_batches, stamped_batches
from tests.rules import rule

TIMES = (1_700_000_000_000, 1_700_000_000_900, 1_700_000_000_300)


def records() -> list[Record]:
    return [Record(n, timestamp, None, b"v" * 50, ()) for n, timestamp in enumerate(TIMES)]


CASES: list[tuple[str, dict[str, object], dict[str, object]]] = [
    ("plain", {}, {}),
    ("compressed", {"codec": Codec.GZIP}, {"codec": Codec.GZIP}),
    ("append time", {"append_time_ms": 5}, {"is_log_append_time": True, "max_timestamp": 5}),
    ("transactional", {"transactional": True, "producer_id": 3, "producer_epoch": 1}, {"is_transactional": True}),
    ("control", {"transactional": True, "control": True}, {"is_transactional": True, "is_control": True}),
]


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize(("how", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_stored_batch_knows_its_attributes(how: dict[str, object], want: dict[str, object], leads: bool) -> None:
    data = encode_batch(records(), base_offset=0, leader_epoch=4, **how)  # type: ignore[arg-type]
    (stored,) = stamped_batches(data, headers(data), 0, 4) if leads else received_batches(data)
    plain: dict[str, object] = {
        "codec": Codec.NONE,
        "is_log_append_time": False,
        "is_transactional": False,
        "is_control": False,
        "base_timestamp": TIMES[0],
        "max_timestamp": max(TIMES),
        "record_count": 3,
        "base_offset": 0,
        "last_offset": 2,
        "next_offset": 3,
        "leader_epoch": 4,
        "size": len(data),
    }
    assert {name: getattr(stored, name) for name in plain} == plain | want
    assert b"".join(stored.parts) == data and type(stored) is StoredBatch


@dataclass
class Offsets:
    last_stable_offset: int = 5
    high_watermark: int = 8
    end_offset: int = 13


@rule("storage 1.24")
@pytest.mark.parametrize(
    ("isolation", "want"),
    [(Isolation.LOG_END, 13), (Isolation.HIGH_WATERMARK, 8), (Isolation.LAST_STABLE_OFFSET, 5)],
)
def test_how_far_each_isolation_reads(isolation: Isolation, want: int) -> None:
    assert upper_bound(isolation, Offsets()) == want
