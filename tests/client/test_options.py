"""Options: both spellings, types, and an error for every impossible value."""

from __future__ import annotations

from typing import Any

import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.client.options import ConsumerOptions, ProducerOptions, parse_bootstrap, parse_options
from quorumlog.rpc.transport import Address


def test_dotted_and_underscored_names_mean_the_same() -> None:
    dotted = parse_options(ProducerOptions, {"bootstrap.servers": "h:1", "linger.ms": "5"}, {})
    assert dotted == parse_options(ProducerOptions, None, {"bootstrap_servers": "h:1", "linger_ms": 5})


@pytest.mark.parametrize(("acks", "wire"), [("all", -1), (-1, -1), ("-1", -1), (0, 0), (1, 1), ("1", 1)])
def test_acks_as_kafka_spells_them(acks: Any, wire: int) -> None:
    assert parse_options(ProducerOptions, None, {"acks": acks}).required_acks == wire


BAD: list[tuple[type, dict[str, Any], str]] = [
    (ProducerOptions, {"linger.msec": 5}, "linger_ms"),
    (ProducerOptions, {"zzz": 5}, "known options"),
    (ProducerOptions, {"acks": 2}, "acks must be one of"),
    (ProducerOptions, {"batch_size": 0}, "positive"),
    (ProducerOptions, {"linger_ms": -1}, "negative"),
    (ProducerOptions, {"linger_ms": "soon"}, "whole number"),
    (ProducerOptions, {"compression_type": "rar"}, "compression_type"),
    (ConsumerOptions, {"auto_offset_reset": "newest"}, "auto_offset_reset"),
    (ConsumerOptions, {"check_crcs": "maybe"}, "true or false"),
    (ConsumerOptions, {"transport": "pigeon"}, "transport"),
    (ConsumerOptions, {"bootstrap_servers": ""}, "empty"),
]


@pytest.mark.parametrize(("kind", "given", "says"), BAD, ids=[str(bad[1]) for bad in BAD])
def test_a_bad_option_is_named(kind: Any, given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_options(kind, given, {})


BOOTSTRAP = [
    ("h:1", [Address("h", 1)]),
    ("h", [Address("h", 9092)]),
    ("a:1, b:2,", [Address("a", 1), Address("b", 2)]),
    ("[::1]:5", [Address("::1", 5)]),
    ("::1", [Address("::1", 9092)]),
]


@pytest.mark.parametrize(("text", "want"), BOOTSTRAP)
def test_bootstrap(text: str, want: list[Address]) -> None:
    assert parse_bootstrap(text) == want


@pytest.mark.parametrize("text", ["h:x", "h:0", "h:65536", ":5", "h:١"])
def test_bad_bootstrap(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_bootstrap(text)
