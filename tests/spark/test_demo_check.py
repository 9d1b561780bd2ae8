"""The demo's proof must fail for every kind of fault; otherwise a successful demo would prove nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from quorumlog_cli.demo.check import Account, account, differences
from quorumlog_cli.demo.flights import figures_of, to_flights
from quorumlog_cli.demo.load import Loaded
from quorumlog_cli.demo.spark import Stored

CSV = """year,dep_delay,carrier,tailnum,origin
2013,2,UA,N1,EWR
2013,NA,UA,N2,EWR
2013,-5,AA,NA,JFK
2013,7,UA,N1,EWR
"""
ROWS = 4


def test_rows_are_numbered_and_keyed_by_tail_number() -> None:
    flights = to_flights(CSV)
    assert flights.columns == ("year", "dep_delay", "carrier", "tailnum", "origin")
    assert flights.records.column("key").to_pylist() == [b"N1", b"N2", None, b"N1"]
    assert flights.records.column("value").to_pylist()[2] == b"2,2013,-5,AA,NA,JFK"
    assert len(to_flights(CSV, 2)) == 2


def test_figures_leave_out_unknown_delays() -> None:
    figures = figures_of(to_flights(CSV))
    assert list(figures) == ["AA", "UA"]
    ua = figures["UA"]
    assert (ua.flights, ua.departed, ua.delay_min, ua.mean_delay_min) == (3, 2, 9, 4.5)
    assert differences(figures, figures) == []
    other = {**figures, "UA": figures["AA"]}
    assert len(differences(figures, other)) == 1
    assert len(differences(figures, {"UA": ua})) == 1


def loaded() -> Loaded:
    made = Loaded.empty(ROWS)
    made.partitions[:] = [0, 1, 0, 1]
    made.offsets[:] = [0, 0, 1, 1]
    return made


def stored(*records: tuple[int, int, int], checksums: Any = None) -> Stored:
    """records: (row, partition, offset)."""
    rows, partitions, offsets = (np.array(column, np.int64) for column in zip(*records, strict=True))
    return Stored(rows, partitions, offsets, to_flights(CSV).checksums()[rows] if checksums is None else checksums)


GOOD = [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1)]


def judge(records: list[tuple[int, int, int]], made: Loaded | None = None) -> Account:
    return account(made or loaded(), stored(*records), to_flights(CSV).checksums())


def test_a_good_load() -> None:
    found = judge(GOOD[::-1])
    assert (found.acknowledged, found.stored, found.faults) == (4, 4, [])


FAULTS = [
    ("a row is missing", GOOD[:3], "missing"),
    ("a row is at another position", [*GOOD[:3], (3, 1, 5)], "missing"),
    ("two rows changed places", [(2, 0, 0), (1, 1, 0), (0, 0, 1), (3, 1, 1)], "missing"),
    ("a position is listed twice", [*GOOD, GOOD[0]], "doubled"),
    ("a copy that nobody sent", [*GOOD, (0, 0, 9)], "doubled"),
]


@pytest.mark.parametrize(("records", "kind"), [c[1:] for c in FAULTS], ids=[c[0] for c in FAULTS])
def test_faults_are_found(records: list[tuple[int, int, int]], kind: str) -> None:
    found = judge(records)
    assert getattr(found, kind) > 0 and found.faults


def test_changed_bytes_are_found() -> None:
    sums = to_flights(CSV).checksums()
    wrong = sums.copy()
    wrong[1] ^= 1
    found = account(loaded(), stored(*GOOD, checksums=wrong), sums)
    assert (found.damaged, found.missing) == (1, 1)


def test_a_value_that_is_not_a_flight_is_found() -> None:
    sums = to_flights(CSV).checksums()
    records = stored(*GOOD, (-1, 0, 2), checksums=np.append(sums, 0))
    assert account(loaded(), records, sums).damaged == 1


def test_a_row_without_acknowledgement_is_reported() -> None:
    made = loaded()
    made.partitions[2] = made.offsets[2] = -1
    found = judge([GOOD[0], GOOD[1], GOOD[3]], made)
    assert (found.unacknowledged, found.missing) == (1, 0) and found.faults
