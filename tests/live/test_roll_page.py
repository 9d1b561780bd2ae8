"""docs/operations.md, `Restart all nodes`, over real processes that a supervisor starts again when they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from operations_world import IDS, Operator

from quorumlog.testing.ports import PortPicker

TOPIC = "orders"
RESTART = '#!/bin/sh\nkill -TERM "$(cat node"$1"/pid)"\n'  # as systemctl does where a unit has Restart=always
LOOK_S = 0.05


@contextmanager
def supervised(operator: Operator) -> Iterator[None]:
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            for node in IDS:
                if operator.processes[node].poll() is not None:
                    operator.start(node)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_all_nodes_are_restarted(tmp_path: Path) -> None:
    picker = PortPicker()
    operator = Operator.with_three_nodes(tmp_path, picker)
    (tmp_path / "restart").write_text(RESTART)
    (tmp_path / "restart").chmod(0o755)
    try:
        for node in IDS:
            operator.wait(lambda node=node: operator.is_ready(node), f"node {node} is ready")
        with operator.client() as cluster:
            cluster.admin.create_topic(TOPIC, 3, 3)
            cluster.producer().send(TOPIC, b"before").result(30)
        before = {node: operator.processes[node].pid for node in IDS}
        with supervised(operator):
            operator.follow("Restart all nodes", {})
        assert all(operator.processes[node].pid != before[node] for node in IDS)
        assert operator.in_sync(TOPIC) == [list(IDS)] * 3
        with operator.client() as cluster, cluster.consumer(TOPIC, start="earliest", stop="latest") as consumer:
            assert [record.value for record in consumer] == [b"before"]
    finally:
        operator.close()
        picker.close()
