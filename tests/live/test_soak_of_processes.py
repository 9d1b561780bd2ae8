"""The short form of the soak with real processes: nothing is lost, and no curve passes its bound."""

from __future__ import annotations

import pytest

from jepsen.soak.processes.run import run_minutes
from jepsen.soak.processes.samples import METRICS

MINUTES = 0.6


@pytest.mark.timeout(300)
def test_nothing_passes_its_bound_while_nodes_are_killed_and_topics_made_anew() -> None:
    outcome = run_minutes(1, MINUTES)
    assert not outcome.findings, list(map(str, outcome.findings))
    counts = outcome.counts
    assert counts["kills"] > 0 and counts["samples"] > 1 and counts["records read and compared"] > 100, counts
    assert {"files of a node", "metadata log and snapshots", *METRICS} <= set(outcome.gauges.by_name)
