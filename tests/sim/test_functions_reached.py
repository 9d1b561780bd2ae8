"""A few seeds run nearly all functions of broker, quorum and storage; the rest is named, with a reason."""

from __future__ import annotations

import pytest

from jepsen.functions.defined import defined_functions
from jepsen.functions.reached import LEAST_SHARE, functions_of_seeds, report, share

SEEDS, SECONDS = range(1, 5), 20


@pytest.mark.timeout(300)
def test_the_swarm_runs_nearly_all_functions() -> None:
    defined, ran = defined_functions(), frozenset(functions_of_seeds(SEEDS, "swarm", SECONDS))
    assert share(defined, ran) >= LEAST_SHARE, "\n".join(report(defined, ran))
