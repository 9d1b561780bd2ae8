"""The modules that `quorumlog status` loads: counted, because load time depends on the machine.

`./dev bench console` measures the time. tests/live/test_features_live.py sees that a real one loads no gRPC.
"""

from __future__ import annotations

import json
import subprocess
import sys

LOAD = """
import json, sys
import quorumlog_cli.commands.nodes.status, quorumlog.client.blocking
print(json.dumps([name for name, module in sys.modules.items() if module is not None]))
"""
NEVER = ("grpc", "google.protobuf", "quorumlog.rpc.calls", "quorumlog.rpc.pb", "quorumlog.rpc.convert", "hypothesis",
         "numpy", "pyarrow", "quorumlog_broker", "quorumlog_quorum.controller")  # fmt: skip
MOST_MODULES = 560  # 532 at the time of writing; a real run had 790 before gRPC was left out, and has 647


def test_status_loads_no_grpc() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", LOAD], capture_output=True, text=True, timeout=60, check=True)
    loaded = json.loads(done.stdout)
    assert [name for name in NEVER if name in loaded] == []
    assert len(loaded) <= MOST_MODULES
