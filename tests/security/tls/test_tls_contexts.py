"""Contexts of ssl from PEM: whom they let in, and why others not."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from quorumlog.security.tls.contexts import client_context, server_context
from quorumlog.security.tls.refusals import is_of_a_certificate, why_failed
from quorumlog.security.tls.settings import client_tls, server_tls
from tests.security.tls.certificates import DAY, NOW, Pair, authority, leaf
from tests.security.tls.handshake import Ends

FOR_SERVERS = ExtendedKeyUsageOID.SERVER_AUTH
CA = authority()
SERVER = leaf(CA, "server", dns=("localhost", "node.example"), ip=("127.0.0.1", "::1"))
ADA = leaf(CA, "ada")


def of_server(pair: Pair = SERVER, **more: str) -> ssl.SSLContext:
    return server_context(server_tls({**inline(pair), **{_key(name): text for name, text in more.items()}}))


def of_client(pair: Pair | None = None, trust: str = CA.pem, **more: str) -> ssl.SSLContext:
    values = {**(inline(pair) if pair else {}), "ssl.truststore.certificates": trust}
    return client_context(client_tls({**values, **{_key(name): text for name, text in more.items()}}))


def inline(pair: Pair) -> dict[str, str]:
    return {"ssl.keystore.key": pair.key_pem(), "ssl.keystore.certificate.chain": pair.pem}


def _key(name: str) -> str:
    return "ssl." + name.replace("_", ".")


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_both_versions_are_spoken(version: str) -> None:
    ends = Ends(of_server(), of_client(enabled_protocols=version))
    ends.shake()
    assert ends.client.version() == version and ends.exchange() == b"x"


def test_no_version_in_common_is_said() -> None:
    ends = Ends(of_server(enabled_protocols="TLSv1.3"), of_client(enabled_protocols="TLSv1.2"))
    with pytest.raises(ssl.SSLError) as failed:
        ends.shake()
    assert "ssl.enabled.protocols" in why_failed(failed.value) or "older TLS" in why_failed(failed.value)
    assert not is_of_a_certificate(failed.value)


@pytest.mark.parametrize("named", ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"])
def test_suites_are_chosen_by_either_name(named: str) -> None:
    ends = Ends(of_server(cipher_suites=named), of_client(enabled_protocols="TLSv1.2"))
    ends.shake()
    assert ends.client.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"  # type: ignore[index]


HOSTS = [
    ("an address entry", leaf(CA, "x", ip=("127.0.0.1", "::1")), True),
    ("a name that looks like an address", leaf(CA, "x", dns=("127.0.0.1", "::1")), False),
    ("a common name that looks like one", leaf(CA, "127.0.0.1"), False),
    ("another address", leaf(CA, "x", ip=("127.0.0.2", "::2")), False),
]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0:0:0:0:0:0:0:1"])
@pytest.mark.parametrize(("pair", "fits"), [c[1:] for c in HOSTS], ids=[c[0] for c in HOSTS])
def test_a_number_is_compared_with_address_entries_only(host: str, pair: Pair, fits: bool) -> None:
    """S2: certificates with names that look like numbers must not stand for them."""
    ends = Ends(of_server(pair), of_client(), host)
    if fits:
        ends.shake()
        return
    with pytest.raises(ssl.SSLCertVerificationError) as failed:
        ends.shake()
    assert "address entry" in why_failed(failed.value)
    Ends(of_server(pair), of_client(endpoint_identification_algorithm=""), host).shake()


def test_another_host_is_refused_and_named_by_the_key() -> None:
    with pytest.raises(ssl.SSLCertVerificationError) as failed:
        Ends(of_server(), of_client(), "elsewhere.example").shake()
    assert "ssl.endpoint.identification.algorithm" in why_failed(failed.value)


AUTH = [
    ("required, shown", "required", ADA, True),
    ("required, none", "required", None, False),
    ("required, expired", "required", leaf(CA, "ada", not_after=NOW - DAY / 2), False),
    ("required, of a foreign authority", "required", leaf(authority("Test CA"), "ada"), False),
    ("required, not for clients", "required", leaf(CA, "ada", usages=(FOR_SERVERS,)), False),
    ("requested, shown", "requested", ADA, True),
    ("requested, none", "requested", None, True),
    ("requested, of a foreign authority", "requested", leaf(authority("Test CA"), "ada"), False),
    ("none, shown", "none", ADA, True),
]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize(("auth", "pair", "let_in"), [c[1:] for c in AUTH], ids=[c[0] for c in AUTH])
def test_client_certificates(auth: str, pair: Pair | None, let_in: bool, version: str) -> None:
    server = of_server(client_auth=auth, truststore_certificates=CA.pem)
    client = _of_any(pair, version)
    ends = Ends(server, client)
    if let_in:
        ends.shake()
        shown = ends.server.getpeercert(binary_form=True)
        assert shown == (pair.der if pair and auth != "none" else None) and ends.exchange() == b"x"
        return
    with pytest.raises(ssl.SSLError) as at_server:
        ends.shake()
    assert at_server.value.reason in ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_VERIFY_FAILED")
    with pytest.raises(ssl.SSLError) as at_client:  # under TLS 1.3 it comes with the first read (S1)
        if version == "TLSv1.2":
            ends.client.do_handshake()
        ends.client.read(1)
    assert is_of_a_certificate(at_client.value) or "certificate" in why_failed(at_client.value)


def _of_any(pair: Pair | None, version: str) -> ssl.SSLContext:
    """A client that shows whatever it has, also what our own reader would refuse."""
    context = of_client(enabled_protocols=version)
    if pair is not None:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(pair.key_pem() + pair.pem)
            file.flush()
            context.load_cert_chain(file.name)
    return context


@pytest.mark.parametrize("auth", ["requested", "required"])
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_no_ticket_spares_a_client_the_look_at_its_certificate(auth: str, version: str) -> None:
    server = of_server(client_auth=auth, truststore_certificates=CA.pem)
    ends = Ends(server, of_client(ADA, enabled_protocols=version))
    ends.shake()
    assert ends.exchange() == b"x"
    session = ends.client.session
    assert session is None or not session.has_ticket


def test_tickets_are_given_where_no_certificate_counts() -> None:
    ends = Ends(of_server(), of_client())
    ends.shake()
    ends.exchange()
    assert ends.client.session is not None and ends.client.session.has_ticket


LAX_CA = authority("Lax CA", usage=False)
UNMARKED_CA = authority("Unmarked CA", critical=False)
LAX = [
    ("an authority without key usage", LAX_CA, leaf(LAX_CA, "s", dns=("localhost",)), "keyUsage"),
    (
        "an authority with basic constraints that are not critical",
        UNMARKED_CA,
        leaf(UNMARKED_CA, "s", dns=("localhost",)),
        "basicConstraints",
    ),
    (
        "a leaf without its authority's identifier",
        CA,
        leaf(CA, "s", dns=("localhost",), identifier=False),
        "authorityKeyIdentifier",
    ),
]


@pytest.mark.parametrize(("issuer", "pair", "missing"), [c[1:] for c in LAX], ids=[c[0] for c in LAX])
def test_a_setting_decides_how_strictly_and_not_the_version_of_python(issuer: Pair, pair: Pair, missing: str) -> None:
    """S3. And a refusal names what is missing."""
    Ends(of_server(pair), of_client(trust=issuer.pem)).shake()
    with pytest.raises(ssl.SSLCertVerificationError) as failed:
        Ends(of_server(pair), of_client(trust=issuer.pem, verify_strict="true")).shake()
    assert missing in why_failed(failed.value) and "ssl.verify.strict=false" in why_failed(failed.value)


def test_a_strict_side_takes_what_has_all() -> None:
    server = of_server(client_auth="required", truststore_certificates=CA.pem, verify_strict="true")
    Ends(server, of_client(ADA, verify_strict="true")).shake()


def test_two_authorities_of_one_name_are_told_apart() -> None:
    """A renewal under the same name: while both are trusted, certificates of both are taken."""
    renewed = authority()
    pairs = [leaf(issuer, "s", dns=("localhost",)) for issuer in (CA, renewed)]
    for trust in (CA.pem + renewed.pem, renewed.pem + CA.pem):
        for pair in pairs:
            Ends(of_server(pair), of_client(trust=trust)).shake()
    with pytest.raises(ssl.SSLCertVerificationError):
        Ends(of_server(pairs[0]), of_client(trust=renewed.pem)).shake()


def test_what_the_truststore_has_is_trusted_itself() -> None:
    """As in Java: an intermediate authority or a server's own certificate may stand there without its root."""
    middle = authority("Middle", issuer=CA)
    pair = leaf(middle, "s", dns=("localhost",))
    Ends(of_server(pair), of_client(trust=middle.pem)).shake()
    Ends(of_server(pair), of_client(trust=pair.pem)).shake()


def test_without_a_truststore_the_systems_authorities_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        Ends(of_server(), client_context(client_tls({}))).shake()
    (tmp_path / "ca.pem").write_text(CA.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    Ends(of_server(), client_context(client_tls({}))).shake()


def test_nothing_is_left_of_a_key_on_the_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    of_server()
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_files_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    Ends(of_server(), of_client()).shake()
    assert list(tmp_path.iterdir()) == []


def test_a_plain_peer_is_named() -> None:
    ends = Ends(of_server(), of_client())
    plain = of_client().wrap_bio(incoming := ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="localhost")
    incoming.write(b"\x00\x00\x00\x10plain bytes")
    with pytest.raises(ssl.SSLError) as failed:
        plain.do_handshake()
    assert "does not speak TLS" in why_failed(failed.value)
    ends.shake()
