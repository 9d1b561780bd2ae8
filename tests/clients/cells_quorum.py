"""kafka-metadata-quorum against a quorum whose voters are in its log: it removes a controller and adds it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from client_matrix import Place

from bench.peers import kafka_tools as kafka
from bench.peers.kafka_tools import get_kafka
from quorumlog.ids import format_uuid
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until
from tests.live.voters_in_log import directory_id, format_with_voters

LEAVES = 3  # the node that is removed and added again


@contextmanager
def quorum() -> Iterator[LocalNodes]:
    picker = PortPicker()
    with TemporaryDirectory() as folder:
        nodes = LocalNodes.create(
            Path(folder) / "cluster", 3, {"controller.listener.names": "INTERNAL"}, picker, format_with_voters
        )
        try:
            nodes.start()
            nodes.wait_ready()
            yield nodes
        finally:
            nodes.stop()
            picker.close()


def change_controllers(_place: Place) -> None:
    with quorum() as nodes:
        node = nodes.layout.node(LEAVES)
        directory = format_uuid(directory_id(node))
        assert _described(nodes, "CurrentVoters") == {1: _id(nodes, 1), 2: _id(nodes, 2), 3: directory}
        said = _run(nodes, "remove-controller", "--controller-id", str(LEAVES), "--controller-directory-id", directory)
        assert "Removed" in said, said
        assert set(_described(nodes, "CurrentVoters")) == {1, 2}
        wait_until(lambda: LEAVES in _described(nodes, "CurrentObservers"), 30, "the removed node as an observer")
        config = node.folder / "for-kafka.properties"  # to Kafka a path is relative to where the tool runs
        config.write_text(f"{node.config.read_text()}log.dirs={node.data}\n")
        said = get_kafka().run(
            kafka.METADATA_QUORUM, "--bootstrap-server", nodes.layout.bootstrap_servers,
            "--command-config", str(config), "add-controller",
        )  # fmt: skip
        assert "Added" in said, said
        assert set(_described(nodes, "CurrentVoters")) == {1, 2, 3}
        replication = _run(nodes, "describe", "--replication")
        assert directory in replication and "Leader" in replication


def _run(nodes: LocalNodes, *arguments: str) -> str:
    return get_kafka().run(kafka.METADATA_QUORUM, "--bootstrap-server", nodes.layout.bootstrap_servers, *arguments)


def _described(nodes: LocalNodes, row: str) -> dict[int, str]:
    """The directory ids of the nodes in this row of `describe --status`, by node id."""
    said = _run(nodes, "describe", "--status")
    (line,) = [line for line in said.splitlines() if line.startswith(row)]
    found = re.findall(r'"id": (\d+), "directoryId": "([^"]+)"', line)
    assert found or row == "CurrentObservers", said
    return {int(node_id): directory for node_id, directory in found}


def _id(nodes: LocalNodes, node_id: int) -> str:
    return format_uuid(directory_id(nodes.layout.node(node_id)))
