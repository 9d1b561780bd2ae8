"""A few seeds run nearly all functions of broker, quorum and storage; the rest is named, with a reason."""

from __future__ import annotations

import pytest
from simulations import NOTED, Simulated, marked

from jepsen.functions.defined import defined_functions
from jepsen.functions.reached import LEAST_SHARE, functions_of, report, share


@pytest.mark.timeout(900)
@marked(NOTED)
def test_the_simulation_runs_nearly_all_functions(simulated: Simulated) -> None:
    ran = frozenset(functions_of(zip(NOTED, simulated(NOTED), strict=True)))
    defined = defined_functions()
    assert share(defined, ran) >= LEAST_SHARE, "\n".join(report(defined, ran))
