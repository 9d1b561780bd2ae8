"""One cluster with default settings for all cells, and the cells' results."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from client_matrix import Ran

from quorumlog.testing import ports
from quorumlog.testing.cluster import LocalCluster

ports.FIRST = 19_092  # as in tests/spark/conftest.py


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("clients") / "cluster") as made:
        yield made


@pytest.fixture(scope="session")
def ran() -> Ran:
    """Cells that passed, with the version that ran."""
    return {}
