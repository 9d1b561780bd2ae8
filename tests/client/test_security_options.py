"""Options of security: everybody's names; each half configuration gets a sentence that names the key and the cure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.client.options import CommonOptions, parse_options
from quorumlog.client.real_edges import security_of
from quorumlog.client.security.names import OTHER_NAMES
from quorumlog.client.security.options import NAMES
from quorumlog.rpc.caller_security import PLAIN_TEXT
from quorumlog.security.sasl.jaas import Module, write_jaas

SECRET = "s3cret-value"
USER = {"sasl.username": "ada", "sasl.password": SECRET}
SCRAM = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
TOKENS = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
URL, CLIENT = "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.credentials.client.id"
JAAS = "sasl.jaas.config"
TLS = {"security.protocol": "SSL"}
BY_TLS = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
ANY_HOST = "ssl.endpoint.identification.algorithm"

HALF: list[tuple[str, dict[str, Any], str]] = [
    ("unknown protocol", {"security.protocol": "TLS"}, "security_protocol must be one of"),
    ("a name without a protocol", USER, "set security_protocol to SASL_PLAINTEXT or SASL_SSL"),
    ("a password over TLS without SASL", {**TLS, **USER}, "set security_protocol to SASL_SSL"),
    ("a truststore without TLS", {"ssl.ca.location": "/ca"}, "set security_protocol to SSL"),
    (
        "a truststore with SASL in clear",
        {**SCRAM, **USER, "ssl.ca.location": "/ca"},
        "set security_protocol to SASL_SSL",
    ),
    ("no mechanism", {"security.protocol": "SASL_SSL", **USER}, "needs sasl_mechanism"),
    ("unknown mechanism", {**SCRAM, "sasl.mechanism": "SCRAM-SHA-1"}, "sasl_mechanism must be one of"),
    ("Kerberos", {**SCRAM, "sasl.mechanism": "GSSAPI"}, "Kerberos"),
    ("no name", {**SCRAM, "sasl.password": SECRET}, "needs sasl_username"),
    ("no password", {**SCRAM, "sasl.username": "ada"}, "needs sasl_password"),
    ("a NUL", {**SCRAM, "sasl.username": "a\0b", "sasl.password": SECRET}, "NUL"),
    ("two sources", {**SCRAM, **USER, JAAS: write_jaas(Module.SCRAM, {"username": "a"})}, "remove one of both"),
    (
        "JAAS of another kind",
        {**SCRAM, JAAS: write_jaas(Module.PLAIN, {"username": "a", "password": SECRET})},
        "is for PLAIN",
    ),
    ("JAAS without a password", {**SCRAM, JAAS: write_jaas(Module.SCRAM, {"username": "a"})}, "password in it"),
    ("JAAS that Java cuts", {**SCRAM, JAAS: f"x required password={SECRET}@;"}, "must begin with one of"),
    ("a delegation token", {**SCRAM, JAAS: write_jaas(Module.SCRAM, {"tokenauth": "true"})}, "delegation tokens"),
    ("no token", TOKENS, "one source of tokens"),
    ("two tokens", {**TOKENS, URL: "file:///t", "sasl_oauthbearer_token": lambda: "t"}, "one source of tokens"),
    ("a token that is a text", {**TOKENS, "sasl_oauthbearer_token": SECRET}, "must be a callable"),
    ("a password with tokens", {**TOKENS, **USER, URL: "file:///t"}, "not for OAUTHBEARER"),
    ("an endpoint without a secret", {**TOKENS, URL: "https://h/t", CLIENT: "me"}, "client_secret: set it"),
    ("an endpoint of another kind", {**TOKENS, URL: "ftp://h/t"}, "must begin with file:"),
    ("a token's URL with SCRAM", {**SCRAM, **USER, URL: "file:///t"}, "set it to OAUTHBEARER"),
    ("a Java keystore", {**TLS, "ssl.truststore.type": "JKS"}, "only PEM"),
    ("a truststore's password", {**TLS, "ssl.truststore.password": SECRET}, "no password"),
    ("no such file", {**TLS, "ssl.truststore.location": "/no/such"}, "/no/such cannot be read"),
    ("a key without a certificate", {**TLS, "ssl.key.location": "/key"}, "set ssl_keystore_location"),
    (
        "no such key",
        {**TLS, "ssl.key.location": "/no/key", "ssl.certificate.location": __file__},
        "/no/key cannot be read",
    ),
    ("an inline key alone", {**TLS, "ssl.keystore.key": SECRET}, "go together"),
    ("an old TLS", {**TLS, "ssl.enabled.protocols": "TLSv1.1"}, "too old"),
    ("gRPC without TLS", {**SCRAM, **USER, "transport": "grpc"}, "over TLS only"),
    ("gRPC and any host", {**TLS, ANY_HOST: "", "transport": "grpc"}, "always compares the host"),
    ("gRPC and a colon", {**BY_TLS, **USER, "sasl.username": "a:b", "transport": "grpc"}, "a colon in the name"),
    ("two names", {**SCRAM, **USER, "sasl_plain_username": "bob"}, "two names of one option"),
]


@pytest.mark.parametrize(("given", "says"), [one[1:] for one in HALF], ids=[one[0] for one in HALF])
def test_a_half_configuration_is_refused_before_a_connection(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        parse_options(CommonOptions, given, {})
        security_of(given)
    assert SECRET not in str(refused.value)


def test_no_option_means_plaintext_and_no_login() -> None:
    assert security_of({"bootstrap.servers": "h:1", "linger.ms": 1}) is PLAIN_TEXT
    assert security_of({"security.protocol": "PLAINTEXT"}) is PLAIN_TEXT


@pytest.mark.parametrize(
    "given",
    [
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **USER},
        {"security_protocol": "sasl_plaintext", "sasl_mechanism": "PLAIN", "sasl_plain_username": "ada",
         "sasl_plain_password": SECRET},
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN",
         JAAS: write_jaas(Module.PLAIN, {"username": "ada", "password": SECRET})},
    ],
    ids=["librdkafka", "kafka-python", "Java"],
)  # fmt: skip
def test_everybodys_names_mean_the_same(given: dict[str, Any]) -> None:
    made = security_of(given)
    assert made.protocol == "SASL_PLAINTEXT" and made.tls is None and made.login is not None
    assert (made.login.mechanism, made.login.who) == ("PLAIN", "user 'ada'")
    assert SECRET not in repr(made) and SECRET not in repr(parse_options(CommonOptions, given, {}))


def test_every_other_name_is_of_an_option() -> None:
    assert set(OTHER_NAMES.values()) <= NAMES


def test_a_key_may_have_a_file_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from tests.security.client.issuer_of_certificates import Authority

    own = Authority(tmp_path, "own")
    text = own.issue("ada").read_text()
    key, found, chain = text.partition("-----BEGIN CERTIFICATE")
    (tmp_path / "key.pem").write_text(key)
    (tmp_path / "chain.pem").write_text(found + chain)
    given = {**TLS, "ssl.ca.location": str(own.path), "ssl.key.location": str(tmp_path / "key.pem")}
    assert security_of({**given, "ssl.certificate.location": str(tmp_path / "chain.pem")}).tls is not None
