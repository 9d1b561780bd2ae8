"""Every key of a broker of Kafka's is in force, has no effect for a reason, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorumlog.configs.broker import TOPIC_SYNONYMS
from quorumlog_server.config.config import from_values, load
from quorumlog_server.config.foreign_keys import IDLE, ONLY, PREFIXES, foreign
from quorumlog_server.config.keys import COARSER, NODE_KEYS, all_keys
from quorumlog_server.config.properties import ConfigError

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "docs" / "server.properties"
IDS = {"node.id": "1", "controller.quorum.voters": "1@127.0.0.1:9093"}

# Name, default, whether it is internal, and the type, of every key that the configuration of a broker of Kafka 4.3.1
# defines. No type: its DescribeConfigs does not tell of it.
KAFKA = [line.split("\t") for line in (Path(__file__).parent / "kafka_broker_keys.tsv").read_text().splitlines()]
NAMES = [name for name, *_ in KAFKA]
FOREIGN = [(name, default) for name, default, *_ in KAFKA if name != "broker.id" and foreign(name) is not None]


def test_every_key_of_kafka_is_known() -> None:
    assert len(NAMES) == 360
    assert [name for name in NAMES if name not in all_keys() and foreign(name) is None] == []


def test_no_key_is_in_two_tables() -> None:
    tables = [set(NODE_KEYS), set(TOPIC_SYNONYMS), set(COARSER), set(IDLE), set(ONLY)]
    assert sum(map(len, tables)) == len(set.union(*tables))
    for prefix, one in PREFIXES.items():
        inside = [name for name in set(IDLE) if name.startswith(prefix)]
        assert [name for name in inside if IDLE[name] == one] == [], "the prefix says the same"


@pytest.mark.parametrize(("key", "default"), FOREIGN, ids=[name for name, _ in FOREIGN])
def test_kafkas_default_is_accepted(key: str, default: str) -> None:
    value = "" if default in ("null", "[]", "<none>") else default
    node = from_values({**IDS, key: value})
    found = foreign(key)
    assert found is not None
    assert any(key in warning and found.reason in warning for warning in node.warnings) == (not found.only)


@pytest.mark.parametrize("key", [*ONLY, *(prefix + "x" for prefix, one in PREFIXES.items() if one.only)])
def test_another_value_is_refused_with_the_reason(key: str) -> None:
    found = foreign(key)
    assert found is not None
    with pytest.raises(ConfigError) as refused:
        from_values({**IDS, key: "something else"}, "server.properties")
    assert str(refused.value).startswith(f"server.properties: {key}=something else cannot be kept: {found.reason}")


def test_a_broker_id_is_the_node_s() -> None:
    assert from_values({**IDS, "broker.id": "1"}).node_id == 1
    with pytest.raises(ConfigError, match=r"broker\.id=2.*node\.id=1"):
        from_values({**IDS, "broker.id": "2"})


def test_the_sample_is_valid_and_says_the_defaults() -> None:
    node = load(str(SAMPLE), SAMPLE.read_text(), {})
    assert [one.name for one in node.listeners] == ["CLIENT", "GRPC", "REPLICATION", "INTERNAL"]
    assert not [warning for warning in node.warnings if "no effect" in warning]
    commented = "\n".join(line.removeprefix("#") for line in SAMPLE.read_text().splitlines() if line[:1] == "#")
    for line in commented.splitlines():
        key, found, value = line.partition("=")
        if found and not line.startswith(" "):
            assert key in NODE_KEYS or key in TOPIC_SYNONYMS or key in COARSER, f"{key} is no key"
            load(str(SAMPLE), f"{SAMPLE.read_text()}\n{key}={value}\n", {})
