"""What a node's file says of its listeners' security: what comes of it, and what is refused in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from authority import Authority
from door import wall_ms

from quorumlog.rpc.transport import Identity
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.settings.types import PASSWORD
from quorumlog_server.config.config import NodeConfig, from_values, load, shown
from quorumlog_server.config.listener_security import rules_of
from quorumlog_server.config.parts import described
from quorumlog_server.config.properties import ConfigError
from quorumlog_server.edge.known_users import KnownUsers
from quorumlog_server.edge.listener_keys import ListenerKeys, read_keys
from quorumlog_server.edge.protections import protections
from quorumlog_server.edge.token_keys import TokenKeys, read_token_keys

PLAIN_ONE = "CLIENT://127.0.0.1:9092,INTERNAL://127.0.0.1:9093"
TWO = "CLIENT://127.0.0.1:9092,SECURE://127.0.0.1:9096,INTERNAL://127.0.0.1:9093"
BASE = {"node.id": "1", "controller.quorum.voters": "1@127.0.0.1:9093", "listeners": PLAIN_ONE}
MAP, KEYSTORE = "listener.security.protocol.map", "ssl.keystore.location"
SASL_SSL = {MAP: "CLIENT:SASL_SSL", KEYSTORE: "/node.pem"}


def config(*changes: dict[str, str]) -> NodeConfig:
    values = dict(BASE)
    for change in changes:
        values |= change
    return from_values(values, "file")


def test_a_plain_node_is_as_ever() -> None:
    node = config()
    assert {one.security for one in node.listeners} == {SecurityProtocol.PLAINTEXT}
    assert "GRPC" in node.listener_security and not any(one.authenticates for one in node.listener_security.values())


def test_keys_of_one_listener_win() -> None:
    node = config(
        {
            "listeners": TWO,
            MAP: "CLIENT:SASL_SSL,SECURE:SSL",
            KEYSTORE: "/all.pem",
            "ssl.truststore.location": "/ca.pem",
            "listener.name.secure.ssl.keystore.location": "/secure.pem",
            "listener.name.secure.ssl.client.auth": "required",
            "listener.name.client.sasl.enabled.mechanisms": "SCRAM-SHA-256, PLAIN",
            "connections.max.reauth.ms": "3600000",
            "listener.name.client.connections.max.reauth.ms": "60000",
            "listener.name.secure.authentication.timeout.ms": "500",
        }
    )
    client, secure = node.listener_security["CLIENT"], node.listener_security["SECURE"]
    assert client.tls is not None and client.logins is not None and secure.tls is not None
    assert (client.tls.keystore_location, secure.tls.keystore_location) == ("/all.pem", "/secure.pem")
    assert secure.logins is None and secure.authenticates and client.authenticates
    assert client.logins.mechanisms == ("SCRAM-SHA-256", "PLAIN") and client.logins.max_reauth_ms == 60_000
    assert (client.timeout_ms, secure.timeout_ms) == (10_000, 500)
    assert [(one.name, one.security.value) for one in node.client_listeners] == [
        ("CLIENT", "SASL_SSL"), ("SECURE", "SSL"),
    ]  # fmt: skip


def test_a_name_alone_says_a_protocol() -> None:
    node = config({"listeners": "SSL://127.0.0.1:9092,INTERNAL://127.0.0.1:9093", KEYSTORE: "/node.pem"})
    assert node.listeners[0].security is SecurityProtocol.SSL


def test_no_open_listener_comes_unasked_beside_one_that_asks() -> None:
    assert [one.name for one in config(SASL_SSL).client_listeners] == ["CLIENT"]


def test_a_mixture_that_is_named_is_served() -> None:
    node = config(SASL_SSL, {"listeners": TWO, "allow.anonymous.listeners": "secure"})
    assert not node.listener_security["SECURE"].authenticates


def test_a_wide_plain_listener_warns_and_starts() -> None:
    wide = {"listeners": "CLIENT://0.0.0.0:9092,INTERNAL://127.0.0.1:9093", "advertised.listeners": "CLIENT://a:9092"}
    assert any("CLIENT" in warning and "unauthenticated" in warning for warning in config(wide).warnings)
    over_sasl = config(wide, {MAP: "CLIENT:SASL_PLAINTEXT"})
    assert any("CLIENT" in warning and "unencrypted" in warning for warning in over_sasl.warnings)
    assert not [warning for warning in config(wide, SASL_SSL).warnings if "other machines" in warning]


def test_a_secret_without_tls_warns_and_starts() -> None:
    wide = {"listeners": "CLIENT://127.0.0.1:9092,INTERNAL://10.0.0.1:9093"}
    (told,) = [warning for warning in config(wide).warnings if "other machines" in warning]
    assert told.startswith("INTERNAL listens at 10.0.0.1:9093: other machines reach it, unencrypted: nodes prove")
    assert "unauthenticated" not in told and f"{MAP}=INTERNAL:SSL and quorumlog.inter.node.auth=both" in told
    over_tls = {MAP: "INTERNAL:SSL", KEYSTORE: "/node.pem", "ssl.truststore.location": "/ca.pem"}
    assert not [warning for warning in config(wide, over_tls).warnings if "other machines" in warning]


def test_paths_begin_at_the_folder_of_the_file_where_it_says_so() -> None:
    lines = "\n".join(f"{key}={value}" for key, value in {**BASE, **SASL_SSL}.items()).replace("/node.pem", "node.pem")
    more = "\npaths.relative.to=file\nlistener.name.client.ssl.truststore.location=ca.pem\n"
    node = load("/etc/quorumlog/server.properties", lines + more, {})
    tls = node.listener_security["CLIENT"].tls
    assert tls is not None
    assert (tls.keystore_location, tls.truststore_location) == ("/etc/quorumlog/node.pem", "/etc/quorumlog/ca.pem")


JWKS = "sasl.oauthbearer.jwks.endpoint.url"
TOKENS = {
    **SASL_SSL, "sasl.enabled.mechanisms": "OAUTHBEARER", JWKS: "file:///a",
    "sasl.oauthbearer.allowed.urls": "https://b/keys,file:///a", "sasl.oauthbearer.expected.issuer": "https://issuer.test",
    "sasl.oauthbearer.expected.audience": "quorumlog",
}  # fmt: skip
REFUSED = [
    ("a protocol", {MAP: "CLIENT:TLS"}, "CLIENT:TLS: write one of PLAINTEXT, SASL_PLAINTEXT, SASL_SSL, SSL"),
    ("a listener that is not there", {MAP: "CLEINT:SSL", KEYSTORE: "/a"}, "CLEINT:SSL: no listener has this name"),
    ("two protocols", {MAP: "CLIENT:SSL,CLIENT:PLAINTEXT"}, "CLIENT is given twice"),
    ("no key", {MAP: "CLIENT:SSL"}, "ssl.keystore.location is not set"),
    ("a typo", {**SASL_SSL, "ssl.client.autn": "required"}, "unknown key ssl.client.autn; did you mean ssl.client"),
    (
        "a typo of one listener",
        {**SASL_SSL, "listener.name.client.ssl.client.autn": "required"},
        "unknown key listener.name.client.ssl.client.autn",
    ),
    (
        "a key of nobody",
        {**SASL_SSL, "listener.name.cleint.ssl.client.auth": "none"},
        "no listener has the name cleint (in lower case); did you mean client?",
    ),
    ("a key without TLS", {KEYSTORE: "/a"}, "no listener has TLS, so everybody is served unasked: write"),
    ("certificates without TLS", {"ssl.client.auth": "required"}, "ssl.client.auth is set, but no listener has TLS"),
    ("mechanisms without SASL", {"sasl.enabled.mechanisms": "PLAIN"}, "no listener has SASL"),
    (
        "one listener's key without TLS",
        {"listener.name.client.ssl.keystore.location": "/a"},
        "CLIENT is PLAINTEXT, which does not read it: write listener.security.protocol.map=CLIENT:SSL or SASL_SSL",
    ),
    (
        "one listener's mechanisms without SASL",
        {MAP: "CLIENT:SSL", KEYSTORE: "/a", "listener.name.client.sasl.enabled.mechanisms": "PLAIN"},
        "CLIENT is SSL, which does not read it",
    ),
    ("no trust", {MAP: "CLIENT:SSL", KEYSTORE: "/a", "ssl.client.auth": "required"}, "ssl.truststore.location is not"),
    ("a word of Kafka's", {**SASL_SSL, "ssl.keystore.type": "JKS"}, "quorumlog tls import"),
    ("a password of a keystore", {**SASL_SSL, "ssl.keystore.password": "hush"}, "PEM file has no password of its own"),
    ("an old version", {**SASL_SSL, "ssl.enabled.protocols": "TLSv1.1"}, "too old to be safe"),
    ("Kerberos", {**SASL_SSL, "sasl.enabled.mechanisms": "GSSAPI"}, "Kerberos is not supported; write SCRAM-SHA-512"),
    ("a mechanism", {**SASL_SSL, "sasl.enabled.mechanisms": "SCRAM"}, "'SCRAM' is not served; there are"),
    ("no mechanism", {**SASL_SSL, "sasl.enabled.mechanisms": ","}, "is empty, and CLIENT lets clients in by SASL"),
    (
        "a number",
        {**SASL_SSL, "listener.name.client.connections.max.reauth.ms": "-1"},
        "listener.name.client.connections.max.reauth.ms=-1 is below 0",
    ),
    ("a mixture", {**SASL_SSL, "listeners": TWO}, "CLIENT asks its clients who they are, and SECURE serves everybody"),
    ("a mixture with gRPC", {**SASL_SSL, "listeners": TWO.replace("SECURE", "GRPC")}, "and GRPC serves everybody"),
    (
        "a mixture by certificates",
        {
            MAP: "SECURE:SSL",
            KEYSTORE: "/a",
            "ssl.truststore.location": "/c",
            "ssl.client.auth": "required",
            "listeners": TWO,
        },
        "SECURE asks its clients who they are, and CLIENT serves everybody",
    ),
    ("anonymous nobody", {**SASL_SSL, "allow.anonymous.listeners": "OTHER"}, "no listener for clients is called OTHER"),
    ("anonymous and not", {**SASL_SSL, "allow.anonymous.listeners": "CLIENT"}, "CLIENT asks who its clients are"),
    (
        "passwords in clear",
        {
            "listeners": "CLIENT://0.0.0.0:9092,INTERNAL://127.0.0.1:9093",
            "advertised.listeners": "CLIENT://a:9092",
            MAP: "CLIENT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        },
        "PLAIN shows passwords to whoever reads the network",
    ),
    (
        "tokens in clear",
        {
            **TOKENS,
            "listeners": "CLIENT://0.0.0.0:9092,INTERNAL://127.0.0.1:9093",
            "advertised.listeners": "CLIENT://a:9092",
            MAP: "CLIENT:SASL_PLAINTEXT",
        },
        "OAUTHBEARER shows tokens to whoever reads the network",
    ),
    ("tokens of anybody", {**TOKENS, "sasl.oauthbearer.expected.issuer": ""}, "CLIENT: OAUTHBEARER needs sasl.oauth"),
    ("tokens for anything", {**TOKENS, "sasl.oauthbearer.expected.audience": ""}, "sasl.oauthbearer.expected.audience"),
    ("no keys", {**TOKENS, JWKS: ""}, f"OAUTHBEARER needs {JWKS}"),
    ("keys over http", {**TOKENS, JWKS: "http://a/keys"}, "http is not safe"),
    ("keys that are not listed", {**TOKENS, JWKS: "file:///etc/other"}, "is not in sasl.oauthbearer.allowed.urls: add"),
    ("keys of another file", {**TOKENS, "listener.name.client." + JWKS: "file:///b"}, "is not in sasl.oauthbearer"),
    ("nodes by SASL", {**SASL_SSL, MAP: "CLIENT:SASL_SSL,INTERNAL:SASL_SSL"}, "nodes prove themselves"),
]


@pytest.mark.parametrize(("changes", "said"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
def test_half_a_configuration_is_refused(changes: dict[str, str], said: str) -> None:
    """CVE-2023-30450: a key that was not understood turned TLS off."""
    with pytest.raises(ConfigError) as refused:
        config(changes)
    assert said in str(refused.value)
    assert "hush" not in str(refused.value)


# Every pair of protocols of two client listeners, and who shows a certificate at the first: CVE-2023-47090.
PROTOCOLS = [one.value for one in SecurityProtocol]


@pytest.mark.parametrize("first", PROTOCOLS)
@pytest.mark.parametrize("second", PROTOCOLS)
@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
def test_nobody_is_anonymous_beside_a_listener_that_asks(first: str, second: str, client_auth: str) -> None:
    values = {"listeners": TWO, MAP: f"CLIENT:{first},SECURE:{second}"}
    has_tls = [protocol for protocol in (first, second) if protocol.endswith("SSL")]
    if has_tls:
        values |= {KEYSTORE: "/a", "ssl.truststore.location": "/c", "ssl.client.auth": client_auth}
    asks = [
        protocol.startswith("SASL") or (protocol == "SSL" and client_auth == "required") for protocol in (first, second)
    ]
    if any(asks) and not all(asks):
        with pytest.raises(ConfigError, match=r"serves everybody: protect .* allow\.anonymous\.listeners="):
            config(values)
    else:
        node = config(values)
        assert [node.listener_security[name].authenticates for name in ("CLIENT", "SECURE")] == asks


def test_secrets_are_shown_to_nobody() -> None:
    secret = "hush-hush"
    node = config(
        SASL_SSL,
        {
            "ssl.key.password": secret,
            "listener.name.client.ssl.key.password": secret,
            "listener.name.client.scram-sha-512.sasl.jaas.config": f"a required password={secret};",
            "sasl.jaas.config": secret,
        },
    )
    assert secret not in repr(shown(node)) and secret not in repr(node.listener_security)
    rows = {one.name: one for one in described(node)}
    row = rows["ssl.key.password"]
    assert row.value is None and row.is_sensitive and row.config_type == PASSWORD
    assert [one.value for one in row.synonyms] == [None]
    assert secret not in repr(rows) and secret not in repr(node.warnings)
    assert not rows["ssl.keystore.location"].is_sensitive


def test_certificates_are_read_before_a_port_opens(tmp_path: Path) -> None:
    node = config(SASL_SSL)
    tls = node.listener_security["CLIENT"].tls
    assert tls is not None
    with pytest.raises(ConfigError, match=r"CLIENT: ssl.keystore.location: /node.pem cannot be read"):
        read_keys({"CLIENT": tls}, lambda: 0)


def test_a_protection_has_what_the_file_says(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem = str(authority.issue("node").pem)
    node = config(
        {
            "listeners": TWO, MAP: "CLIENT:SASL_SSL,SECURE:SSL", KEYSTORE: pem, "ssl.truststore.location":
            str(authority.ca), "ssl.client.auth": "required", "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "sasl.server.max.receive.size": "4096", "connection.failed.authentication.delay.ms": "7",
        }
    )  # fmt: skip
    identity = Identity(cluster_id="c", node_id=1, incarnation_id=b"i" * 16, secret=b"s" * 32)
    keys = read_keys({name: one.tls for name, one in node.listener_security.items() if one.tls}, wall_ms)
    users = KnownUsers()
    found = protections(node, identity, keys, TokenKeys(), users, wall_ms)
    assert sorted(found) == ["CLIENT", "SECURE"]
    client, secure = found["CLIENT"], found["SECURE"]
    assert client.sasl is not None and list(client.sasl.mechanisms) == ["PLAIN", "SCRAM-SHA-256"]
    assert client.sasl.failed_delay_ms == 7 and client.max_receive_bytes == 4096 and client.may_open is not None
    assert client.certified is not None, "the name of the login counts, and the certificate bounds it"
    assert secure.sasl is None and secure.certified is not None
    assert str(secure.certified(authority.issue("ada").der).principal) == "User:CN=ada"
    assert secure.may_open is None
    assert client.context is not None and client.context() is not (secure.context and secure.context())
    plain = protections(config(), identity, ListenerKeys(), TokenKeys(), users, wall_ms)
    assert plain == {}


def test_what_a_file_says_of_tokens() -> None:
    more = {"sasl.oauthbearer.sub.claim.name": "azp", "sasl.oauthbearer.clock.skew.seconds": "5"}
    tokens = config(TOKENS, more).listener_security["CLIENT"].tokens
    assert tokens is not None and tokens.audiences == ("quorumlog",) and tokens.jwks_url == "file:///a"
    rules = rules_of(tokens)
    assert (rules.issuer, rules.subject_claim, rules.skew_ms) == ("https://issuer.test", "azp", 5_000)
    assert config(SASL_SSL).listener_security["CLIENT"].tokens is None


@pytest.mark.parametrize("content", [None, b"{}"], ids=["no file", "no keys in it"])
def test_without_keys_of_tokens_a_node_does_not_start(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "keys.json"
    if content is not None:
        file.write_bytes(content)
    url = f"file://{file}"
    tokens = config(TOKENS, {JWKS: url, "sasl.oauthbearer.allowed.urls": url}).listener_security["CLIENT"].tokens
    assert tokens is not None
    with pytest.raises(ConfigError, match="CLIENT: the keys that sign tokens cannot be had from file:///"):
        read_token_keys({"CLIENT": tokens}, wall_ms)


def test_without_the_extra_of_tokens_a_node_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joserfc", None)
    with pytest.raises(ConfigError, match=r"CLIENT: OAUTHBEARER needs joserfc: pip install 'quorumlog\[oauth\]'"):
        config(TOKENS)
