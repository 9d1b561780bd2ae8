"""What settings show: only what was decided to be shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.security.redact import SECRET_KEYS, is_secret, redacted
from quorumlog.security.secret import HIDDEN
from quorumlog_server.config.keys import NODE_KEYS
from tests.rules import rule

SHOWN = {"node.id", "listeners", "sasl.enabled.mechanisms", "sasl.oauthbearer.jwks.endpoint.url"}
CASES = [
    ("on the list", "node.id", "1", "1"),
    ("not on the list", "my.own.key", "canary", HIDDEN),
    ("mistyped", "sasl.jaas.confg", "canary", HIDDEN),
    ("in capitals", "Node.Id", "canary", HIDDEN),
    ("of a listener", "listener.name.client.sasl.enabled.mechanisms", "PLAIN", "PLAIN"),
    ("of a listener and a mechanism", "listener.name.client.plain.sasl.jaas.config", "canary", HIDDEN),
    ("of a listener, not on the list", "listener.name.client.other", "canary", HIDDEN),
    ("nothing set", "sasl.jaas.config", "", ""),
    ("a user in a URL", "sasl.oauthbearer.jwks.endpoint.url", "https://ada:canary@host/keys", HIDDEN),
    ("a URL", "sasl.oauthbearer.jwks.endpoint.url", "https://host/keys?a=b@c", "https://host/keys?a=b@c"),
    ("listeners", "listeners", "CLIENT://127.0.0.1:9092,B://h:1", "CLIENT://127.0.0.1:9092,B://h:1"),
]


@pytest.mark.parametrize(("key", "value", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_is_shown(key: str, value: str, want: str) -> None:
    assert redacted({key: value}, SHOWN) == {key: want}


@pytest.mark.parametrize("key", sorted(SECRET_KEYS))
@pytest.mark.parametrize("prefix", ["", "listener.name.a-b.", "listener.name.a.scram-sha-512."])
def test_a_secret_stays_hidden_whatever_the_list_says(prefix: str, key: str) -> None:
    assert is_secret(prefix + key)
    assert redacted({prefix + key: "canary"}, {*SHOWN, key, prefix + key}) == {prefix + key: HIDDEN}


@given(st.dictionaries(st.text(max_size=30).filter(lambda key: "." not in key), st.just("canary")))
@rule("security 1.19")
def test_no_unknown_key_shows_its_value(values: dict[str, str]) -> None:
    told = redacted(values, SHOWN)
    assert list(told) == list(values) and "canary" not in told.values()


def test_each_key_of_a_node_that_is_secret_is_one_of_them() -> None:
    secret = {key.name for key in NODE_KEYS.values() if key.secret}
    assert len(secret) > 3 and all(map(is_secret, secret))
