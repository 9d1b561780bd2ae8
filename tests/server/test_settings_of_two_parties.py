"""Settings by which a broker and the controller both decide: the table in docs/operations.md names all of them."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

from quorumlog.configs.broker import BROKER_NAMES, DECIDED_TOGETHER
from quorumlog.offsets_topic import OffsetsTopicConfig
from quorumlog.settings.broker import BrokerSettings
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog.settings.controller import ControllerConfig
from quorumlog.settings.groups import GroupConfig
from quorumlog.settings.key import PartSettings, keys_of
from quorumlog.settings.lifecycle import LifecycleConfig
from quorumlog.settings.metadata_log import SnapshotConfig
from quorumlog.settings.moves import MovesConfig
from quorumlog.settings.quorum import RaftConfig
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog.settings.requests import HandlerLimits
from quorumlog.settings.transactions import TransactionConfig, VerificationConfig
from quorumlog.transactions_topic import TransactionsTopicConfig
from quorumlog_server.config.config import NodeConfig

ROOT = Path(__file__).parents[2]
PARTS = ROOT / "server" / "quorumlog_server" / "config" / "parts.py"
OF_BROKERS = ("broker_config", "_replication")
BROKER_PARTS = (BrokerSettings, LifecycleConfig, ReplicationConfig, HandlerLimits, CleanerConfig, MovesConfig)
BROKER_PARTS += (GroupConfig, OffsetsTopicConfig, TransactionConfig, TransactionsTopicConfig, VerificationConfig)
OF_CONTROLLERS = ("controller_config", "metadata_log_config")
CONTROLLER_PARTS = (ControllerConfig, RaftConfig, SnapshotConfig)
KEYS = {"broker.session.timeout.ms": "broker.session.timeout.ms", "internal_listener": "inter.broker.listener.name"}
KEYS["rights"] = "authorizer.class.name"  # with those of its part


def read_by(functions: tuple[str, ...], parts: tuple[type[PartSettings], ...]) -> set[str]:
    """Fields of NodeConfig that are no parts, and the keys of these parts."""
    tree = ast.parse(PARTS.read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in functions]
    assert len(found) == len(functions)
    attributes = [node for one in found for node in ast.walk(one) if isinstance(node, ast.Attribute)]
    read = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "config"}
    of_parts = {field.name: field for field in fields(NodeConfig) if field.type in {part.__name__ for part in parts}}
    assert read >= of_parts.keys() - {"metadata_log"}, "a part that nobody passes on"
    return (read - of_parts.keys()) | {key.name for part in parts for key in keys_of(part)}


def test_the_table_names_every_setting_that_both_read() -> None:
    both = read_by(OF_BROKERS, BROKER_PARTS) & read_by(OF_CONTROLLERS, CONTROLLER_PARTS)
    assert both - {"topic_defaults"} == set(KEYS), "say in the table how both agree, and add it here"
    page = (ROOT / "docs" / "operations.md").read_text()
    section = page.partition("## Settings by which two parties decide")[2].partition("\n## ")[0]
    named = set(re.findall(r"^\| `([a-z.]+)`", section, re.M))
    assert named == {*KEYS.values(), *(BROKER_NAMES[key] for key in DECIDED_TOGETHER)}
