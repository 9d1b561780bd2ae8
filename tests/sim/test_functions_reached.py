"""The seeds of CI run nearly all functions of broker, quorum and storage; the rest is named, with a reason."""

from __future__ import annotations

import pytest
from simulations import EVERY, Simulated, marked

from jepsen.functions.defined import defined_functions
from jepsen.functions.reached import LEAST_SHARE, functions_of, report, share


@pytest.mark.timeout(900)
@marked(EVERY)
def test_the_simulation_runs_nearly_all_functions(simulated: Simulated) -> None:
    ran = frozenset(functions_of(zip(EVERY, simulated(EVERY), strict=True)))
    defined = defined_functions()
    assert share(defined, ran) >= LEAST_SHARE, "\n".join(report(defined, ran))
