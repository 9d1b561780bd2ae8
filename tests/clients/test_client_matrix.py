"""Every cell of the matrix, then the page with the results. QUORUMLOG_WRITE_MATRIX=1 rewrites the page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import cells_java
import pytest
import reassign_clients
import transactions_aiokafka
import transactions_confluent
import transactions_java
import transactions_kafka_python
from cells_aiokafka import AIOKAFKA
from cells_confluent import CONFLUENT
from cells_kafka_python import KAFKA_PYTHON
from cells_kcat import KCAT
from cells_sarama import SARAMA
from client_matrix import FEATURES, PAGE, Cell, Client, Place, Ran, Tool, page, skip_if, stale

from bench.peers.kafka_tools import VERSION
from quorumlog.testing.cluster import LocalCluster


def with_cells(client: Client, more: Mapping[str, Cell]) -> Client:
    return replace(client, cells={**client.cells, **more})


ALL = (
    with_cells(CONFLUENT, {**transactions_confluent.CELLS, **reassign_clients.CONFLUENT_CELLS}),
    with_cells(KAFKA_PYTHON, {**transactions_kafka_python.CELLS, **reassign_clients.KAFKA_PYTHON_CELLS}),
    with_cells(AIOKAFKA, transactions_aiokafka.CELLS),
    KCAT,
    SARAMA,
)
TOOLS = {**cells_java.TOOLS, **transactions_java.TRANSACTION_TOOLS}
CLIENTS = {client.name: client for client in ALL}
CELLS = [
    pytest.param(client, feature, id=f"{client.name}-{feature}", marks=client.marks)
    for client in CLIENTS.values()
    for feature in FEATURES
    if feature in client.cells
]
WRITE = "QUORUMLOG_WRITE_MATRIX"  # environment variable: write the page instead of checking it


@pytest.mark.parametrize(("client", "feature"), CELLS)
def test_cell(client: Client, feature: str, cluster: LocalCluster, ran: Ran) -> None:
    skip_if(client.missing())
    with cluster.topic("cell") as topic:
        client.cells[feature](Place(cluster.bootstrap_servers, topic.name))
    ran[(client.name, feature)] = client.version()


@pytest.mark.parametrize("tool", TOOLS.values(), ids=list(TOOLS))
def test_tool(tool: Tool, cluster: LocalCluster, ran: Ran) -> None:
    skip_if(cells_java.missing())
    with cluster.topic("tool") as topic:
        tool.cell(Place(cluster.bootstrap_servers, topic.name))
    ran[(tool.name, "")] = VERSION


def test_the_page_shows_what_ran(ran: Ran, request: pytest.FixtureRequest) -> None:
    """Runs last in its module. Does nothing if only some cells ran."""
    if not ran or request.session.testscollected < len(CELLS) + len(TOOLS):
        return
    fresh = page(CLIENTS, TOOLS, ran)
    if WRITE in os.environ:
        PAGE.write_text(fresh)
    assert stale(PAGE.read_text(), fresh) == [], f"rewrite it with {WRITE}=1"


def test_a_cell_that_did_not_run_agrees_and_any_other_difference_counts() -> None:
    old, new = page(CLIENTS, TOOLS, {("kcat", FEATURES[0]): "1.7"}), page(CLIENTS, TOOLS, {})
    assert stale(old, new) == []
    assert len(stale(new, old)) == 1
    assert stale(old, old.replace("1.7", "1.8")) == []
    assert stale(old, old.replace("1.7", "1.7, refused")) != []
