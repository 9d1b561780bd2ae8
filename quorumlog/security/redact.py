"""Which settings may be shown: one allow-list for `config show`, dumps, bundles and crash reports.

A setting is shown if its key is on the caller's list and is none of SECRET_KEYS. So a key that is new, mistyped or
somebody else's is hidden until somebody has decided about it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from quorumlog.security.secret import HIDDEN

# Kafka's keys of type PASSWORD, and librdkafka's for the same. DescribeConfigs tells no value of them.
SECRET_KEYS = frozenset(
    {
        "sasl.jaas.config",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.certificates",
        "ssl.truststore.password",
    }
)
_OF_LISTENER = re.compile(r"listener\.name\.[^.]+\.")
_OF_MECHANISM = re.compile(r"(plain|scram-sha-256|scram-sha-512|oauthbearer)\.")
_USER_IN_URL = re.compile(r"//[^/@\s]*@")


def base_key(key: str) -> str:
    """The key without `listener.name.NAME.` and the mechanism's name behind it."""
    found = _OF_LISTENER.match(key)
    if found is None:
        return key
    of_listener = key[found.end() :]
    mechanism = _OF_MECHANISM.match(of_listener)
    return of_listener[mechanism.end() :] if mechanism is not None else of_listener


def is_secret(key: str) -> bool:
    """Its value is a secret, also as that of one listener."""
    return base_key(key) in SECRET_KEYS


def redacted(values: Mapping[str, str], shown: Container[str]) -> dict[str, str]:
    """The same keys in the same order. shown: keys whose values may be seen, without a listener's name before them.

    An empty value stays: it says that nothing is set. A shown value with a user before a host (`//user:password@host`)
    is hidden, too.
    """
    return {key: value if _may_be_seen(key, value, shown) else HIDDEN for key, value in values.items()}


def _may_be_seen(key: str, value: str, shown: Container[str]) -> bool:
    if not value:
        return True
    return base_key(key) in shown and not is_secret(key) and _USER_IN_URL.search(value) is None
