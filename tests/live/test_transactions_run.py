"""Transactions that append to lists, over real processes whose coordinators and leaders are killed: no anomaly."""

from __future__ import annotations

from pathlib import Path

import pytest

from jepsen.live.transactions.command import CLIENTS, STRIKE_EVERY
from jepsen.live.transactions.run import REPORT, Options, carry_out

COUNT = 10_000  # about 100 s of two processors that do nothing else


@pytest.mark.timeout(420)
def test_transactions_survive_kills(tmp_path: Path) -> None:
    outcome = carry_out(Options(count=COUNT, clients=CLIENTS, seed=1, every=STRIKE_EVERY), tmp_path, print)
    assert outcome.findings == []
    assert outcome.verdict == "VALID", [str(one) for one in outcome.minimums if not one.is_met]
    assert (tmp_path / REPORT).exists()
