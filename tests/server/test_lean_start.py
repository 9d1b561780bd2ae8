"""The modules that a node's process loads before it serves: counted, because load time depends on the machine."""

from __future__ import annotations

import json
import subprocess
import sys

START = """
import json, runpy, sys
sys.argv = ["quorumlog_server", "-c", "no/such/file"]
try:
    runpy.run_module("quorumlog_server", run_name="__main__", alter_sys=True)
except SystemExit as end:
    assert end.code == 2, end
from quorumlog.wire.protocol.apis import load_newest
load_newest()
print(json.dumps([name for name, module in sys.modules.items() if module is not None]))
"""
NEVER = (
    # nothing of a command, a client, a simulation, a test
    "typer", "rich", "pygments", "click", "pydantic", "quorumlog.client", "quorumlog.spark", "quorumlog.testing",
    "jepsen", "hypothesis", "pytest", "unittest",
    # nothing columnar
    "pyarrow", "numpy", "numba", "pandas", "pyspark", "quorumlog.records.columnar",
    # nothing that only the first scrape needs
    "prometheus_client", "http.server", "wsgiref", "quorumlog_server.metrics",
)  # fmt: skip
MOST_MODULES = 360  # of libraries: 336 at the time of writing, on Python 3.11; 580 before modules were left out
MOST_OWN_MODULES = 922  # 920 with backups and what is counted; a hundred small files load in some 50 ms


def test_a_node_loads_only_the_modules_that_it_needs() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", START], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert "kio.schema.fetch.v18.request" in loaded and "quorumlog_broker.node" in loaded
    assert [name for name in NEVER if name in loaded] == []
    own = sum(name.startswith("quorumlog") for name in loaded)
    assert len(loaded) - own <= MOST_MODULES
    assert own <= MOST_OWN_MODULES
