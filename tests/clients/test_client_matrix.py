"""Every cell of the matrix, then the page that holds it. Written anew with QUORUMLOG_WRITE_MATRIX=1."""

from __future__ import annotations

import pytest
from cells_aiokafka import AIOKAFKA
from cells_confluent import CONFLUENT
from cells_kafka_python import KAFKA_PYTHON
from cells_kcat import KCAT
from client_matrix import FEATURES, LISTED_SKIPS, Client, Place, Ran

from quorumlog.testing.cluster import LocalCluster

CLIENTS = {client.name: client for client in (CONFLUENT, KAFKA_PYTHON, AIOKAFKA, KCAT)}
TOOLS = {}
CELLS = [
    pytest.param(client, feature, id=f"{client.name}-{feature}")
    for client in CLIENTS.values()
    for feature in FEATURES
    if feature in client.cells
]


@pytest.mark.parametrize(("client", "feature"), CELLS)
def test_cell(client: Client, feature: str, cluster: LocalCluster, ran: Ran) -> None:
    if reason := client.missing():
        assert reason in LISTED_SKIPS, f"a skip that is not listed: {reason}"
        pytest.skip(reason)
    with cluster.topic("cell") as topic:
        client.cells[feature](Place(cluster.bootstrap_servers, topic.name))
    ran[(client.name, feature)] = client.version()
