"""How far a read_committed consumer may read, case by case, and against a scan of the transactions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_partition import Driver

from quorumlog.ids import Offset
from quorumlog_broker.partition.events import LogAdvanced, LogStartMoved
from quorumlog_storage.producers.transactions import NEVER, STABLE, Transactions, Unstable
from tests.rules import rule

CASES = [
    ("no transaction", STABLE, 10, 0, 10),
    ("an open one", Unstable(4), 10, 0, 4),
    ("an open one above the mark", Unstable(14), 10, 0, 10),
    ("an ended one below the mark", Unstable(NEVER, ((9, 4),)), 10, 0, 10),
    ("an ended one whose marker lies at the mark", Unstable(NEVER, ((10, 4),)), 10, 0, 4),
    ("an ended one and an open one", Unstable(6, ((12, 4),)), 10, 0, 4),
    ("records were deleted inside an open one", Unstable(4), 10, 7, 7),
]


@pytest.mark.parametrize(("unstable", "mark", "start", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_last_stable_offset(unstable: Unstable, mark: Offset, start: Offset, want: Offset) -> None:
    driver = Driver(min_isr=1)
    driver.lead(isr=(1, 2))
    driver.step(LogAdvanced(20, 20, unstable))
    driver.fetch(2, mark)
    if start:
        driver.step(LogStartMoved(start))
    assert driver.core.high_watermark == mark
    assert driver.core.last_stable_offset == want


@rule("storage 5.1", "log 3.5")
@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["data", "end", "plain", "mark"])), max_size=60))
def test_it_never_falls_and_equals_a_scan(steps: list[tuple[int, str]]) -> None:
    driver = Driver(min_isr=1)
    driver.lead(isr=(1, 2))
    transactions = Transactions()
    open_since: dict[int, Offset] = {}
    ended: list[tuple[Offset, Offset]] = []
    end, mark, before = 0, 0, 0
    for producer_id, what in steps:
        if what == "mark":
            mark = min(end, mark + producer_id)
            driver.fetch(2, mark)
        else:
            transactions.forget_replicated(mark)
            if what == "data" and producer_id not in open_since:
                open_since[producer_id] = end
                transactions.begin(producer_id, end)
            elif what == "end" and producer_id in open_since:
                first = open_since.pop(producer_id)
                ended.append((first, end))
                transactions.end(producer_id, first, end, committed=True)
            end += 1
            driver.step(LogAdvanced(end, end, transactions.unstable))
        scanned = min([mark, *open_since.values(), *(first for first, marker in ended if marker >= mark)])
        assert driver.core.high_watermark == mark
        assert driver.core.last_stable_offset == scanned >= before
        before = scanned
