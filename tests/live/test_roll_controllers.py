"""`quorumlog roll` where controllers are nodes of their own: they have no registration that tells of a new life."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from operations_world import Operator

from quorumlog.testing.ports import HOST, PortPicker
from quorumlog_cli.main import main
from tests.live.upgrade_load import UpgradeLoad

CONTROLLERS, BROKERS = (1, 2, 3), (4, 5, 6)
LOOK_S = 0.05


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    """Three controllers and three brokers; each is started again when it ends, as by Restart=always."""
    picker = PortPicker()
    made = Operator.with_dedicated_controllers(tmp_path, picker, CONTROLLERS, BROKERS)
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            for node, process in list(made.processes.items()):
                if process.poll() is not None:
                    made.start(node)

    thread = threading.Thread(target=look)
    try:
        for node in BROKERS:
            made.wait(lambda node=node: made.is_ready(node), f"node {node} is ready")
        thread.start()
        yield made
    finally:
        over.set()
        if thread.ident is not None:
            thread.join()
        made.close()
        picker.close()


@pytest.mark.timeout(280)
def test_controllers_and_brokers_are_rolled(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    before = {node: process.pid for node, process in operator.processes.items()}
    servers = ",".join(f"{HOST}:{operator.ports[node - 1].client}" for node in BROKERS)
    command = f'kill -TERM "$(cat {operator.root}/node"{{id}}"/pid)"'
    with UpgradeLoad(servers) as load:
        assert main(["roll", "-b", servers, "--yes", "-o", "json", "--restart-command", command]) == 0
    found = json.loads(capsys.readouterr().out)
    active = next(one["node"] for one in found["plan"] if one["active_controller"])
    assert active in CONTROLLERS and found["restarted"][-1] == active
    assert set(found["restarted"][:2]) == set(CONTROLLERS) - {active} and set(found["restarted"][2:5]) == set(BROKERS)
    assert all(operator.processes[node].pid != pid for node, pid in before.items())
    assert not load.broken and len(load.acked) > 100
    assert not [error for error in load.errors if error.startswith("produce")]
