"""Real applications against three real nodes of one cluster, where their packages can be had: the shorter ones.

`./dev applications` runs them all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from applications.__main__ import APPLICATIONS, run
from applications.environments import CACHE, Unavailable

SMOKE = ("faust", "bytewax", "connect", "mirror-maker")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", SMOKE)
def test_it_runs_unmodified(name: str, tmp_path: Path) -> None:
    try:
        run(APPLICATIONS[name], tmp_path, CACHE, nodes=3)
    except Unavailable as reason:
        pytest.skip(str(reason))
