"""Settings by which a broker and the controller both decide: the table in docs/operations.md names all of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from quorumlog.configs.broker import BROKER_NAMES, DECIDED_TOGETHER

ROOT = Path(__file__).parents[2]
PARTS = ROOT / "server" / "quorumlog_server" / "config" / "parts.py"
OF_BROKERS = ("broker_config", "_replication")
OF_CONTROLLERS = ("controller_config", "raft_config", "snapshot_config", "metadata_log_config")
KEYS = {"broker_session_timeout_ms": "broker.session.timeout.ms", "internal_listener": "inter.broker.listener.name"}


def read_by(functions: tuple[str, ...]) -> set[str]:
    """Fields of NodeConfig."""
    tree = ast.parse(PARTS.read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in functions]
    assert len(found) == len(functions)
    attributes = [node for one in found for node in ast.walk(one) if isinstance(node, ast.Attribute)]
    return {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "config"}


def test_the_table_names_every_setting_that_both_read() -> None:
    both = read_by(OF_BROKERS) & read_by(OF_CONTROLLERS)
    assert both - {"topic_defaults"} == set(KEYS), "say in the table how both agree, and add it here"
    page = (ROOT / "docs" / "operations.md").read_text()
    section = page.partition("## Settings by which two parties decide")[2].partition("\n## ")[0]
    named = set(re.findall(r"^\| `([a-z.]+)`", section, re.M))
    assert named == {*KEYS.values(), *(BROKER_NAMES[key] for key in DECIDED_TOGETHER)}
