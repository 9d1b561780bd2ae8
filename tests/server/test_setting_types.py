"""Each setting that Kafka has, too, is told with Kafka's type, wherever it is described."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog.configs.broker import BROKER_CONFIGS, BROKER_NAMES
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.settings import types as setting_types
from quorumlog.settings.types import INT, LONG, SHORT, TOLD, number_type
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, EMPTY
from quorumlog_quorum.metadata.topic_settings import of_all_brokers
from quorumlog_server.config.config import from_values
from quorumlog_server.config.parts import described

KAFKA = [line.split("\t") for line in (Path(__file__).parent / "kafka_broker_keys.tsv").read_text().splitlines()]
TYPES = {name: getattr(setting_types, kind.upper()) for name, _, _, kind in KAFKA if kind and kind != "password"}
IDS = {"node.id": "1", "controller.quorum.voters": "1@127.0.0.1:9093"}


def test_of_a_broker() -> None:
    told = {one.name: one.config_type for one in described(from_values(IDS))}
    shared = told.keys() & TYPES.keys()
    assert len(shared) >= 100
    assert {name: told[name] for name in shared} == {name: TYPES[name] for name in shared}


def test_what_is_set_for_all_brokers() -> None:
    delta = Delta(EMPTY)
    for name, key in BROKER_CONFIGS.items():
        of_all = {"resource_type": BROKER_RESOURCE, "resource_name": CLUSTER_DEFAULT}
        delta.replay(ConfigRecord(**of_all, name=name, value=key.default))
    told = {one.name: one.config_type for one in of_all_brokers(delta.apply(1, 1))}
    assert told.keys() == {BROKER_NAMES.get(name, name) for name in BROKER_CONFIGS}
    shared = told.keys() & TYPES.keys()
    assert len(shared) > 40
    assert {name: told[name] for name in shared} == {name: TYPES[name] for name in shared}


def test_the_table_of_types_names_settings_of_kafka() -> None:
    assert {name: TYPES[name] for name in TOLD} == TOLD


@pytest.mark.parametrize(
    ("maximum", "want"),
    [(None, INT), (64, INT), (2**15 - 1, SHORT), (2**31 - 1, INT), (2**31, LONG), (2**63 - 1, LONG)],
)
def test_a_number_has_the_type_that_holds_it(maximum: float | None, want: int) -> None:
    """A short is one that says so: a small limit alone does not make one."""
    assert number_type(maximum) == want
