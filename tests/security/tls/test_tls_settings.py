"""Texts of an operator become settings of TLS, or one sentence that names the key and the cure."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from quorumlog.security.tls.ciphers import OPENSSL_NAMES, openssl_ciphers
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.settings import ClientAuth, ClientTls, ServerTls, client_tls, server_tls

KEY = {"ssl.keystore.location": "/tls/node.pem"}
TRUST = {"ssl.truststore.location": "/tls/ca.pem"}


def test_what_a_listener_gets_without_more() -> None:
    assert server_tls(KEY) == ServerTls(
        keystore_location="/tls/node.pem", protocols=("TLSv1.2", "TLSv1.3"), client_auth=ClientAuth.NONE, strict=False,
        mapping_rules="DEFAULT", allow_dn_changes=False, allow_san_changes=False,
    )  # fmt: skip


def test_all_that_a_listener_may_say() -> None:
    said = {
        **KEY, **TRUST, "ssl.keystore.type": "pem", "ssl.key.password": "s", "ssl.client.auth": "Required",
        "ssl.enabled.protocols": "TLSv1.3", "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/,DEFAULT", "ssl.allow.dn.changes": "true",
        "ssl.allow.san.changes": "TRUE", "ssl.verify.strict": "true",
    }  # fmt: skip
    assert server_tls(said, "listener.name.client.") == ServerTls(
        keystore_location="/tls/node.pem", truststore_location="/tls/ca.pem", key_password="s", protocols=("TLSv1.3",),
        client_auth=ClientAuth.REQUIRED, ciphers="ECDHE-RSA-AES128-GCM-SHA256", strict=True, allow_dn_changes=True,
        allow_san_changes=True, mapping_rules="RULE:^CN=(.*)$/$1/,DEFAULT", prefix="listener.name.client.",
    )  # fmt: skip


def test_a_client_needs_to_say_nothing() -> None:
    assert client_tls({}) == ClientTls(check_hostname=True)
    for algorithm in ("", "none", " NONE "):
        assert not client_tls({"ssl.endpoint.identification.algorithm": algorithm}).check_hostname


REFUSED = [
    ("no key", {}, "ssl.keystore.location is not set"),
    ("an empty key", {"ssl.keystore.location": " "}, "ssl.keystore.location is not set"),
    ("JKS", {**KEY, "ssl.keystore.type": "JKS"}, "quorumlog tls import"),
    ("PKCS12", {**KEY, **TRUST, "ssl.truststore.type": "PKCS12"}, "ssl.truststore.type=PKCS12: only PEM is read"),
    (
        "a keystore's password",
        {**KEY, "ssl.keystore.password": "hunter2"},
        "take it out; the password of an encrypted key is",
    ),
    ("a truststore's password", {**KEY, "ssl.truststore.password": "hunter2"}, "ssl.truststore.password is set"),
    ("a key twice", {**KEY, "ssl.keystore.key": "hunter2", "ssl.keystore.certificate.chain": "x"}, "are both set"),
    ("a key without a chain", {"ssl.keystore.key": "hunter2"}, "without ssl.keystore.certificate.chain"),
    ("a chain without a key", {"ssl.keystore.certificate.chain": "x"}, "without ssl.keystore.key"),
    ("trust twice", {**KEY, **TRUST, "ssl.truststore.certificates": "x"}, "are both set"),
    ("a password of nothing", {"ssl.key.password": "hunter2"}, "and no key"),
    (
        "a protocol that is too old",
        {**KEY, "ssl.enabled.protocols": "TLSv1.1,TLSv1.2"},
        "'TLSv1.1' is too old to be safe",
    ),
    ("a protocol that nobody knows", {**KEY, "ssl.enabled.protocols": "TLSv1.4"}, "'TLSv1.4' is not known"),
    ("a suite of TLS 1.3", {**KEY, "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "cannot be chosen"),
    (
        "a suite with a slip",
        {**KEY, "ssl.cipher.suites": "ECDHE-RSA-AES128-GCM-SHA265"},
        "do you mean ECDHE-RSA-AES128-GCM-SHA256?",
    ),
    ("a suite without encryption", {**KEY, "ssl.cipher.suites": "eNULL"}, "'eNULL' is not a known cipher suite"),
    (
        "client.auth with a slip",
        {**KEY, **TRUST, "ssl.client.auth": "require"},
        "write one of none, requested, required",
    ),
    ("certificates of anybody", {**KEY, "ssl.client.auth": "requested"}, "ssl.truststore.location is not set"),
    ("bad rules", {**KEY, "ssl.principal.mapping.rules": "RULE:x"}, "ssl.principal.mapping.rules: `RULE:x` is no rule"),
    ("a flag with a slip", {**KEY, "ssl.allow.dn.changes": "yes"}, "write one of true, false"),
]


@pytest.mark.parametrize(("values", "said"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_a_mistake_has_one_sentence_that_names_the_key(values: dict[str, str], said: str) -> None:
    with pytest.raises(BadTls) as refused:
        server_tls(values, "listener.name.x.")
    message = str(refused.value)
    assert said in message.replace("listener.name.x.", "") and message.startswith("listener.name.x.ssl.")
    assert "hunter2" not in message and "\n" not in message


def test_a_client_knows_https_only() -> None:
    with pytest.raises(BadTls, match="https checks the name"):
        client_tls({"ssl.endpoint.identification.algorithm": "http"})


def test_secrets_are_in_no_text_of_settings() -> None:
    tls = server_tls(
        {"ssl.keystore.key": "canary1", "ssl.keystore.certificate.chain": "c", "ssl.key.password": "canary2"}
    )
    assert "canary" not in repr(tls)


def test_lists_are_divided_by_commas_or_colons() -> None:
    names = "ECDHE-RSA-AES128-GCM-SHA256:TLS_DHE_RSA_WITH_AES_256_GCM_SHA384 , AES128-SHA"
    assert server_tls({**KEY, "ssl.cipher.suites": names}).ciphers == (
        "ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:AES128-SHA"
    )


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_each_suite_has_the_name_that_openssl_gives_it() -> None:
    said = subprocess.run(
        ["openssl", "ciphers", "-stdname", "-tls1_2", "ALL:@SECLEVEL=0"],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    told = {line.split()[0]: line.split()[2] for line in said.stdout.splitlines()}
    assert {name: told[name] for name in OPENSSL_NAMES} == OPENSSL_NAMES
    assert openssl_ciphers(OPENSSL_NAMES, "k") == ":".join(OPENSSL_NAMES.values())
