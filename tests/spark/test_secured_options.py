"""Options of security on Spark's driver: their names, where their secrets are, and what of them can be seen."""

from __future__ import annotations

import pickle
import ssl
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, StructField, StructType

from quorumlog.client.errors import ConfigError
from quorumlog.client.real_edges import security_of
from quorumlog.client.security.logins import PasswordLogin
from quorumlog.security.sasl.jaas import Module, read_jaas, write_jaas
from quorumlog.spark.format.source import BatchReader
from quorumlog.spark.read.options import parse_read_options, parse_stream_options, parse_table_options
from quorumlog.spark.session.protection import is_in_clear, warn_of_secrets
from quorumlog.spark.write.options import parse_write_options
from quorumlog.spark.write.sink import BatchWriter
from tests.security.client.issuer_of_certificates import Authority

CANARY = "c4nary-s3cret"
SERVERS = {"kafka.bootstrap.servers": "h:1"}
VALUES = StructType([StructField("value", BinaryType())])
LOGIN = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "SCRAM-SHA-512"}
PARSERS: dict[str, Callable[[dict[str, str]], Any]] = {
    "batch": lambda more: parse_read_options({**SERVERS, "subscribe": "orders", **more}),
    "stream": lambda more: parse_stream_options({**SERVERS, "subscribe": "orders", **more}),
    "table": lambda more: parse_table_options({**SERVERS, "table": "partitions", **more}),
    "write": lambda more: parse_write_options({**SERVERS, "topic": "orders", **more}),
    "stream write": lambda more: parse_write_options({**SERVERS, "topic": "orders", **more}, is_stream=True),
}


def login_of(options: Any) -> PasswordLogin:
    """What a task logs in with: the options have been pickled."""
    made = security_of(pickle.loads(pickle.dumps(options)).client).login
    assert isinstance(made, PasswordLogin)
    return made


NAMES = [
    ("of Spark's own source", {"kafka.sasl.username": "ada", "kafka.sasl.password": CANARY}),
    ("in Java's line", {"kafka.sasl.jaas.config": write_jaas(Module.SCRAM, {"username": "ada", "password": CANARY})}),
    ("ours", {"quorumlog.sasl.username": "ada", "quorumlog.sasl.password": CANARY}),
    ("without a prefix", {"sasl.username": "ada", "sasl.password": CANARY}),
    ("of kafka-python", {"kafka.sasl_plain_username": "ada", "kafka.sasl_plain_password": CANARY}),
]


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("named", [case[1] for case in NAMES], ids=[case[0] for case in NAMES])
def test_every_reader_and_writer_takes_the_names_of_clients(kind: str, named: dict[str, str]) -> None:
    login = login_of(PARSERS[kind]({**LOGIN, **named}))
    assert (login.mechanism, login.name, login.password.reveal()) == ("SCRAM-SHA-512", "ada", CANARY)


@pytest.mark.parametrize("kind", PARSERS)
def test_what_is_printed_has_no_secret(kind: str) -> None:
    options = PARSERS[kind]({**LOGIN, "kafka.sasl.username": "ada", "kafka.sasl.password": CANARY})
    makers: dict[str, Callable[[Any, Any], Any]] = {"batch": BatchReader, "write": lambda given, _: BatchWriter(given)}
    shown = [repr(options), str(options), f"{options.client}", repr(pickle.loads(pickle.dumps(options)))]
    if kind in makers:
        shown.append(repr(vars(makers[kind](options, VALUES))))
    assert "[hidden]" in shown[0]
    assert not [one for one in shown if CANARY in one]
    assert CANARY.encode() in pickle.dumps(options), "else this looks at nothing: a task needs it"


# --- where a secret is


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CANARY", CANARY)
    (tmp_path / "password").write_text(f"{CANARY}\n")
    (tmp_path / "secrets.properties").write_text(f"# of the job\npassword={CANARY}\nempty=\n")
    entries = {("kafka", "ada"): CANARY}
    found = SimpleNamespace(get_password=lambda service, user: entries.get((service, user)))
    monkeypatch.setitem(sys.modules, "keyring", found)
    return tmp_path


LINE = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="ada" password="{}";'
SOURCES = [
    ("env", "kafka.sasl.password", "env:CANARY"),
    ("file", "kafka.sasl.password", "file:{}/password"),
    ("keyring", "kafka.sasl.password", "keyring:kafka/ada"),
    ("Kafka's file", "kafka.sasl.password", "${{file:{}/secrets.properties:password}}"),
    ("Kafka's env", "kafka.sasl.password", "${{env:CANARY}}"),
    ("in a line", "kafka.sasl.jaas.config", LINE.format("${{file:{}/secrets.properties:password}}")),
    ("env in a line", "kafka.sasl.jaas.config", LINE.format("${{env:CANARY}}")),
]


@pytest.mark.parametrize("source", [case[1:] for case in SOURCES], ids=[case[0] for case in SOURCES])
def test_a_secret_is_read_where_the_option_says(places: Path, source: tuple[str, str]) -> None:
    name, value = source[0], source[1].format(places)
    user = {} if "jaas" in name else {"kafka.sasl.username": "ada"}
    given = {**LOGIN, **user, name: value}
    assert not is_in_clear(name, value)
    options = PARSERS["batch"](given)
    for file in places.iterdir():
        file.unlink()
    assert login_of(options).password.reveal() == CANARY, "the driver has read it"


NO_SECRET = [
    ("env:NO_SUCH_VARIABLE", "sasl_password=env:NO_SUCH_VARIABLE: there is no variable"),
    ("file:/no/such/file", "sasl_password=file:/no/such/file: it cannot be read (No such file"),
    ("${file:/no/such/file}", "it names no key"),
    ("${file:PLACES/secrets.properties:user}", "the file has no key user"),
    ("${file:PLACES/secrets.properties:empty}", "the file has no key empty"),
    ("keyring:kafka/bob", "there is no such entry"),
]


@pytest.mark.parametrize(("value", "says"), NO_SECRET, ids=[case[0] for case in NO_SECRET])
def test_a_source_without_a_secret_is_named(places: Path, value: str, says: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        PARSERS["write"](
            {**LOGIN, "kafka.sasl.username": "ada", "kafka.sasl.password": value.replace("PLACES", str(places))}
        )
    assert says in str(refusal.value) and CANARY not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.parametrize("password", [r"t\b", "a\\\\b", r"\101", "/*x*/"])
def test_what_java_reads_as_an_escape_stays_as_it_is(password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", password)
    options = PARSERS["batch"]({**LOGIN, "kafka.sasl.jaas.config": LINE.format("${env:CANARY}")})
    assert login_of(options).password.reveal() == password


@settings(max_examples=100)
@given(password=st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=1, max_size=40))
def test_no_sign_of_a_password_ends_its_place_in_the_line(password: str) -> None:
    """As it would if it were put into the text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CANARY", password)
        options = PARSERS["batch"]({**LOGIN, "kafka.sasl.jaas.config": LINE.format("${env:CANARY}")})
    assert read_jaas(options.client["sasl_jaas_config"]).options["password"].reveal() == password
    assert login_of(options).password.reveal() == password


# --- files


def test_files_travel_as_texts(tmp_path: Path) -> None:
    own = Authority(tmp_path, "own")
    keystore = own.issue("ada")
    tls = {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(own.path),
        "kafka.ssl.keystore.location": str(keystore),
    }
    options = [parse(tls) for parse in PARSERS.values()]
    key = keystore.read_text().splitlines()[1]
    own.path.unlink()
    keystore.unlink()
    for one in options:
        arrived = pickle.loads(pickle.dumps(one)).client
        assert not [name for name in arrived if name.endswith("_location")]
        tls = security_of(arrived).tls
        assert tls is not None
        context = tls.newest().context
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert [found["subject"] for found in context.get_ca_certs()] == [((("commonName", "own"),),)]
        assert key not in repr(one) and key in arrived["ssl_keystore_key"]


def test_a_key_that_has_a_password_travels_without_it(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    keystore = Authority(tmp_path, "own").issue("ada")
    plain = serialization.load_pem_private_key(keystore.read_bytes(), None)
    locked = plain.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(CANARY.encode()),
    )
    chain = keystore.read_bytes()
    keystore.write_bytes(locked + chain[chain.index(b"-----BEGIN CERTIFICATE") :])
    more = {"kafka.security.protocol": "SSL", "kafka.ssl.keystore.location": str(keystore)}
    options = PARSERS["batch"]({**more, "kafka.ssl.key.password": CANARY})
    assert CANARY.encode() not in pickle.dumps(options)
    assert security_of(options.client).tls is not None


# --- refusals and warnings

REFUSED = [
    ("half of it", {"kafka.sasl.password": CANARY}, "security_protocol=PLAINTEXT does not use it"),
    ("a function", {"kafka.sasl.oauthbearer.token": "x"}, "it is a function"),
    ("a function, by another name", {"kafka.sasl_oauth_token_provider": "x"}, "it is a function"),
    ("a Java class", {"kafka.sasl.login.callback.handler.class": "x"}, "it is a Java class"),
    ("a Java keystore", {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "JKS"}, "only PEM is read"),
    ("Kerberos", {**LOGIN, "kafka.sasl.mechanism": "GSSAPI"}, "Kerberos"),
    ("no file", {"kafka.security.protocol": "SSL", "kafka.ssl.ca.location": "/no/ca.pem"}, "/no/ca.pem cannot be read"),
    ("two names", {**LOGIN, "kafka.sasl.username": "a", "sasl_plain_username": "b"}, "two names of one option"),
    ("a misspelt one", {"kafka.sasl.pasword": CANARY}, "did you mean 'kafka.sasl.password'"),
]


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize(("more", "says"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_mistake_is_told_by_the_driver(kind: str, more: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        PARSERS[kind](more)
    assert says in str(refusal.value) and CANARY not in str(refusal.value)


CLEAR = [
    ("a password", "kafka.sasl.password", CANARY, True),
    ("in Java's line", "kafka.sasl.jaas.config", LINE.format(CANARY), True),
    ("beside a source", "kafka.sasl.jaas.config", LINE.format(CANARY).replace("ada", "${env:USER}"), True),
    ("a line without one", "kafka.sasl.jaas.config", "x.OAuthBearerLoginModule required;", False),
    ("a key", "quorumlog.ssl.keystore.key", "-----BEGIN PRIVATE KEY-----", True),
    ("by another name", "sasl_plain_password", CANARY, True),
    ("an authority", "kafka.ssl.truststore.certificates", "-----BEGIN CERTIFICATE-----", False),
    ("a user", "kafka.sasl.username", "ada", False),
    ("nothing", "kafka.sasl.password", "", False),
    ("not ours", "checkpointLocation", "/data", False),
]


@pytest.mark.parametrize(("name", "value", "is_clear"), [case[1:] for case in CLEAR], ids=[case[0] for case in CLEAR])
def test_a_secret_in_an_option_is_warned_of(name: str, value: str, is_clear: bool) -> None:
    assert is_in_clear(name, value) is is_clear
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_of_secrets({"subscribe": "orders", name: value})
    assert len(told) == is_clear
    assert not told or (name in str(told[0].message) and CANARY not in str(told[0].message))


def test_options_can_be_changed_on_their_way() -> None:
    options = PARSERS["batch"]({**LOGIN, "kafka.sasl.username": "ada", "kafka.sasl.password": CANARY})
    assert CANARY not in repr(replace(options, poll_timeout_ms=1))
