"""Keys, chains and authorities in PEM: every form that is common is read, and nothing half right is used."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.security.tls.contexts import server_context
from quorumlog.security.tls.der import SEQUENCE, read_elements, read_one
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.files import FileState, RealFiles
from quorumlog.security.tls.material import Material, read_material, trusts_itself
from quorumlog.security.tls.pem import Block, read_blocks
from quorumlog.security.tls.settings import ClientAuth, ClientTls, ServerTls
from tests.security.tls.certificates import DAY, NOW, Pair, authority, leaf

NOW_MS = int(NOW.timestamp()) * 1000
CA = authority()
MIDDLE = authority("Middle", issuer=CA)
PAIR = leaf(MIDDLE, "node-1", dns=("localhost",))
OTHER = leaf(MIDDLE, "node-2")
RSA = leaf(CA, "rsa", key=rsa.generate_private_key(65537, 2048))
KEYSTORE, TRUST = "/tls/node.pem", "/tls/ca.pem"


class Shelf:
    """Files by their paths. open: those that others may read."""

    def __init__(self, files: dict[str, str | bytes], readable: tuple[str, ...] = ()) -> None:
        self.files, self.readable = files, readable

    def read(self, path: str, most_bytes: int) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory", path)
        data = self.files[path]
        return (data.encode() if isinstance(data, str) else data)[:most_bytes]

    def state(self, path: str) -> FileState:
        return FileState(0, len(self.read(path, 1 << 30)), 0, path)

    def others_read(self, path: str) -> bool:
        self.read(path, 0)
        return path in self.readable


def read(keystore: str | bytes, password: str | None = None, trust: str | bytes | None = None) -> Material:
    tls = ServerTls(keystore_location=KEYSTORE, key_password=password, truststore_location=trust and TRUST)
    return read_material(tls, Shelf({KEYSTORE: keystore, **({TRUST: trust} if trust else {})}), NOW_MS)


FORMS = [
    ("PKCS#8", PAIR, PAIR.key_pem(), None),
    ("PKCS#8, encrypted", PAIR, PAIR.key_pem(password="pw"), "pw"),
    ("SEC1", PAIR, PAIR.key_pem("traditional"), None),
    ("SEC1, encrypted", PAIR, PAIR.key_pem("traditional", "pw"), "pw"),
    ("PKCS#1", RSA, RSA.key_pem("traditional"), None),
    ("PKCS#1, encrypted", RSA, RSA.key_pem("traditional", "pw"), "pw"),
    ("with a password that it does not need", PAIR, PAIR.key_pem(), "pw"),
    ("lines that end as on Windows", PAIR, PAIR.key_pem().replace("\n", "\r\n"), None),
]


@pytest.mark.parametrize(("pair", "key", "password"), [c[1:] for c in FORMS], ids=[c[0] for c in FORMS])
def test_every_common_form_of_a_key_is_read(pair: Pair, key: str, password: str | None) -> None:
    for text in (key + pair.pem, pair.pem + key, f"Bag Attributes\n  name: x\n{key}subject=x\n{pair.pem}"):
        material = read(text, password)
        assert material.key == pair.key_pem().encode() and material.chain == pair.pem.encode()
        assert material.leaf == pair.der and "PRIVATE" not in repr(material)


def test_a_chain_may_come_in_one_line_of_a_properties_file() -> None:
    line = (PAIR.pem + MIDDLE.pem).replace("\n", " ")
    tls = ServerTls(keystore_key=PAIR.key_pem().replace("\n", " "), keystore_chain=line, truststore_certificates=CA.pem)
    material = read_material(tls, Shelf({}), NOW_MS)
    assert material.chain == (PAIR.pem + MIDDLE.pem).encode() and material.key == PAIR.key_pem().encode()
    assert material.authorities == CA.pem.encode()


def test_a_chain_ends_with_its_first_certificate_that_ends() -> None:
    middle = authority("Soon over", issuer=CA, not_after=NOW + 2 * DAY)
    pair = leaf(middle)
    assert read(pair.key_pem() + pair.pem + middle.pem).not_after_ms == NOW_MS + 2 * 86_400_000


def test_a_client_may_have_no_key() -> None:
    assert read_material(ClientTls(), Shelf({}), NOW_MS) == Material()


REFUSED = [
    ("no key", PAIR.pem, "has no private key"),
    ("two keys", PAIR.key_pem() + OTHER.key_pem() + PAIR.pem, "has 2 private keys"),
    ("no certificate", PAIR.key_pem(), "has no certificate"),
    ("a certificate of another key", PAIR.key_pem() + OTHER.pem, "is not that of the private key"),
    ("the leaf at the end", PAIR.key_pem() + MIDDLE.pem + PAIR.pem, "certificate 2 is, and has to stand first"),
    (
        "a chain in the wrong order",
        PAIR.key_pem() + PAIR.pem + CA.pem + MIDDLE.pem,
        "certificate 1 is not issued by certificate 2",
    ),
    (
        "a chain with a stranger of the same name",
        PAIR.key_pem() + PAIR.pem + authority("Middle").pem,
        "is not issued by",
    ),
    ("a chain that is too long", PAIR.key_pem() + PAIR.pem * 11, "more than 10"),
    ("a key that is encrypted", PAIR.key_pem(password="pw") + PAIR.pem, "ssl.key.password is not set"),
    ("a key of base64 only", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n" + PAIR.pem, "damaged"),
    ("half a file", (PAIR.key_pem() + PAIR.pem)[:-40], "a part of the text is missing"),
    ("no base64", PAIR.key_pem().replace("M", "!", 3) + PAIR.pem, "is not base64"),
    (
        "a damaged certificate",
        PAIR.key_pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        "certificate 1 is damaged",
    ),
    ("an empty file", "", "has no private key"),
    ("a Java keystore", b"\xfe\xed\xfe\xed\0\0\0\2", "Java keystore (JKS)"),
    ("PKCS#12", b"\x30\x82\x01\0\x02\x01\x03", "PKCS#12"),
    ("a file without an end", b"-" * (5 << 20), "bytes are more than"),
]


@pytest.mark.parametrize(("keystore", "said"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_nothing_half_right_is_used(keystore: str | bytes, said: str) -> None:
    with pytest.raises(BadTls) as refused:
        read(keystore)
    message = str(refused.value)
    assert said in message and "ssl.keystore.location" in message and KEYSTORE in message
    assert "\n" not in message and PAIR.key_pem().splitlines()[1][:20] not in message


@pytest.mark.parametrize("form", ["PKCS8", "traditional"])
def test_a_wrong_password_is_told_and_not_shown(form: str) -> None:
    with pytest.raises(BadTls, match=r"does not open with ssl\.key\.password") as refused:
        read(PAIR.key_pem(form, "right") + PAIR.pem, "canary")
    assert "canary" not in str(refused.value)


def test_a_certificate_is_used_in_its_days_only() -> None:
    over = leaf(CA, not_after=NOW - DAY / 2)
    early = leaf(CA, not_before=NOW + DAY)
    with pytest.raises(BadTls, match=r"certificate 1 has expired on \d+-\d+-\d+: renew it"):
        read(over.key_pem() + over.pem)
    with pytest.raises(BadTls, match="check the clock"):
        read(early.key_pem() + early.pem)


@pytest.mark.parametrize(("trust", "said"), [("nothing", "has no certificate"), (PAIR.key_pem(), "has no certificate"),
    (b"\xfe\xed\xfe\xed", "Java keystore")])  # fmt: skip
def test_a_truststore_has_certificates(trust: str | bytes, said: str) -> None:
    with pytest.raises(BadTls) as refused:
        read(PAIR.key_pem() + PAIR.pem, trust=trust)
    assert said in str(refused.value) and "ssl.truststore.location" in str(refused.value)


def test_a_systems_bundle_is_taken_whatever_strict_readers_say_of_a_root_in_it() -> None:
    """Some roots have a serial number of zero or less, which RFC 5280 forbids."""
    serial = next(part for part in read_elements(signed_part(CA.der)) if part.tag == 0x02)
    odd = CA.der.replace(serial.whole, b"\x02" + serial.whole[1:2] + b"\x80" + serial.content[1:], 1)
    text = Block("CERTIFICATE", b"", odd).text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        material = read(PAIR.key_pem() + PAIR.pem, trust=CA.pem.encode() + text)
    tls = ServerTls(keystore_location=KEYSTORE, truststore_location=TRUST, client_auth=ClientAuth.REQUIRED)
    assert len(server_context(tls, material).get_ca_certs()) == 2


def signed_part(der: bytes) -> bytes:
    return next(read_elements(read_one(der, SEQUENCE))).content


def test_a_certificate_that_openssl_does_not_take_is_told_with_its_key() -> None:
    """A subject can be found in it, and no more."""
    damaged = Block("CERTIFICATE", b"", _with_a_wrong_tag(CA.der)).text()
    with pytest.raises(BadTls, match=r"ssl\.truststore\.location"):
        material = read(PAIR.key_pem() + PAIR.pem, trust=damaged)
        server_context(ServerTls(keystore_location=KEYSTORE, truststore_location=TRUST), material)


def _with_a_wrong_tag(der: bytes) -> bytes:
    """The tag of the signature's algorithm becomes another one."""
    inner = signed_part(der)
    begin = der.index(inner) + len(inner)
    return der[:begin] + b"\x04" + der[begin + 1 :]


def test_a_file_that_is_not_there_is_named() -> None:
    tls = ServerTls(keystore_location=KEYSTORE, prefix="listener.name.x.")
    with pytest.raises(
        BadTls, match=r"listener\.name\.x\.ssl\.keystore\.location: /tls/node\.pem cannot be read: No such"
    ):
        read_material(tls, Shelf({}), NOW_MS)


def test_a_listeners_key_that_others_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "node.pem"
    path.write_text(PAIR.key_pem() + PAIR.pem)
    tls = ServerTls(keystore_location=str(path))
    for mode in (0o640, 0o604):
        os.chmod(path, mode)
        with pytest.raises(BadTls, match="chmod 600"):
            read_material(tls, RealFiles(), NOW_MS)
    os.chmod(path, 0o600)
    assert read_material(tls, RealFiles(), NOW_MS).leaf == PAIR.der


@pytest.mark.parametrize(
    ("trusted", "fits"),
    [
        (CA.pem, True),
        (MIDDLE.pem, True),
        (authority().pem, False),
        (authority("Another").pem, False),
        (authority("Another").pem + CA.pem, True),
    ],
    ids=["the root", "what issued it", "the same name, another key", "another", "one of two"],
)
def test_whether_an_own_certificate_is_trusted(trusted: str, fits: bool) -> None:
    chain = PAIR.pem if MIDDLE.pem in PAIR.pem else PAIR.pem + MIDDLE.pem
    assert trusts_itself(read(PAIR.key_pem() + chain, trust=trusted)) is fits


def test_of_a_file_that_all_may_read_and_that_has_no_key_the_key_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(PAIR.pem)
    with pytest.raises(BadTls, match="has no private key"):
        read_material(ServerTls(keystore_location=str(path)), RealFiles(), NOW_MS)


def test_a_key_of_roots_may_be_read_by_the_group_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Kubernetes mounts a secret for a process that is not root."""
    path = tmp_path / "node.pem"
    path.write_text("")
    if os.stat(path).st_uid != 0:
        pytest.skip("only root makes a file of root's")
    monkeypatch.setattr(os, "geteuid", lambda: 10_001)
    found = []
    for mode in (0o440, 0o640, 0o644):
        os.chmod(path, mode)
        found.append(RealFiles().others_read(str(path)))
    assert found == [False, False, True]


def test_a_clients_key_is_taken_as_other_clients_take_it() -> None:
    shelf = Shelf({KEYSTORE: PAIR.key_pem() + PAIR.pem}, readable=(KEYSTORE,))
    assert read_material(ClientTls(keystore_location=KEYSTORE), shelf, NOW_MS).leaf == PAIR.der


@given(
    st.lists(
        st.tuples(st.sampled_from(["CERTIFICATE", "PRIVATE KEY", "X Y1"]), st.binary(min_size=1, max_size=120)),
        max_size=5,
    )
)
def test_blocks_are_read_as_they_are_written(blocks: list[tuple[str, bytes]]) -> None:
    made = [Block(label, b"", der) for label, der in blocks]
    assert read_blocks(b"text\n".join(block.text() for block in made)) == made


def test_a_block_in_the_old_form_keeps_what_its_key_needs() -> None:
    (block,) = read_blocks(PAIR.key_pem("traditional", "pw").encode())
    assert block.is_encrypted and block.is_key
    assert serialization.load_pem_private_key(block.text(), b"pw") is not None
    assert replace(block, headers=b"") != block
