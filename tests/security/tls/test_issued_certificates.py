"""What our own authority issues: strict readers take it, and it says no more than it should."""

from __future__ import annotations

import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.ids import NodeId
from quorumlog.security.tls.errors import AlreadyThere, BadRequest, BadTls, NotThere
from quorumlog.security.tls.issuing.certificates import Pair, issue, new_authority
from quorumlog.security.tls.issuing.client_files import java_value
from quorumlog.security.tls.issuing.folder import AUTHORITY_KEY, NEXT_KEY, TRUST, Folder, der_of, hosts_of
from quorumlog.security.tls.issuing.rolls import next_step, renew_authority
from quorumlog.security.tls.issuing.subjects import ClientSubject, NodeSubject, parse_client, parse_node
from quorumlog.security.tls.issuing.trial import verdicts
from quorumlog.security.tls.peer import ClusterNode, node_of, read_subject
from tests.security.tls.certificates import NOW

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
NODE = parse_node("1=host1.example,127.0.0.1,::1")
ADA = parse_client("ada")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")


def folder(path: Path, *subjects: NodeSubject | ClientSubject) -> Folder:
    made = Folder(path / "certs", NOW)
    made.create(CLUSTER)
    made.issue(subjects or (NODE, ADA), replace=False)
    return made


def accepts(place: Folder, file: str, *untrusted: str) -> str:
    """What `openssl verify -x509_strict` says of a file; empty: it takes it."""
    more = [word for one in untrusted for word in ("-untrusted", str(place.path / one))]
    done = subprocess.run(
        ["openssl", "verify", "-x509_strict", "-CAfile", str(place.path / TRUST), *more, str(place.path / file)],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stdout + done.stderr


@needs_openssl
def test_strict_readers_take_all_that_is_issued_and_renewed(tmp_path: Path) -> None:
    """Alone and with the chain, and after each step of a renewal (OpenVPN/easy-rsa#1418)."""
    place = folder(tmp_path)
    for step in range(4):
        if step:
            renew_authority(place, NOW)
        for file in ("node-1.pem", "client-ada.pem", TRUST):
            assert accepts(place, file) == "" and accepts(place, file, TRUST) == ""
        place.issue([NODE], replace=True)
        assert accepts(place, "node-1.pem") == ""


def extension(certificate: x509.Certificate, kind: type[x509.ExtensionType]) -> tuple[x509.ExtensionType, bool]:
    found = certificate.extensions.get_extension_for_class(kind)
    return found.value, found.critical


def test_an_authority_issues_leaves_only_for_ten_years() -> None:
    made = new_authority(CLUSTER, NOW).certificate
    assert extension(made, x509.BasicConstraints) == (x509.BasicConstraints(ca=True, path_length=0), True)
    usage, critical = extension(made, x509.KeyUsage)
    assert critical and usage.key_cert_sign and not usage.digital_signature  # type: ignore[attr-defined]
    assert made.not_valid_after_utc - NOW == timedelta(days=3_652)
    assert isinstance(made.public_key(), ec.EllipticCurvePublicKey) and made.public_key().curve.name == "secp256r1"  # type: ignore[union-attr]


def test_a_node_and_a_client_get_what_they_need_and_no_more() -> None:
    authority = new_authority(CLUSTER, NOW)
    node, client = issue(authority, NODE, NOW).certificate, issue(authority, ADA, NOW).certificate
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    assert list(extension(node, x509.ExtendedKeyUsage)[0]) == both  # type: ignore[call-overload]
    assert list(extension(client, x509.ExtendedKeyUsage)[0]) == both[1:]  # type: ignore[call-overload]
    assert node_of(der_of(node)) == ClusterNode(CLUSTER, NodeId(1)) and node_of(der_of(client)) is None
    assert hosts_of(node) == ("host1.example", "127.0.0.1", "::1", "localhost") and hosts_of(client) == ()
    assert read_subject(der_of(client)) == "CN=ada"
    for one in (node, client):
        assert extension(one, x509.BasicConstraints) == (x509.BasicConstraints(ca=False, path_length=None), True)
        assert one.not_valid_after_utc - NOW == timedelta(days=90) and one.not_valid_before_utc < NOW


def test_a_number_is_an_address_entry_however_it_is_written() -> None:
    """strimzi/strimzi-kafka-operator#873: addresses that stood there as names."""
    certificate = issue(new_authority(CLUSTER, NOW), parse_node("1=127.0.0.1,[::1],0:0:0:0:0:0:0:1"), NOW).certificate
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(map(str, names.get_values_for_type(x509.IPAddress))) == ["127.0.0.1", "::1"]
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]


def test_a_certificate_does_not_outlive_its_authority() -> None:
    authority = new_authority(CLUSTER, NOW - timedelta(days=3_600))
    assert issue(authority, ADA, NOW).certificate.not_valid_after_utc == authority.certificate.not_valid_after_utc


def test_no_key_and_no_number_is_given_twice(tmp_path: Path) -> None:
    authority = new_authority(CLUSTER, NOW)
    made = [issue(authority, ADA, NOW) for _ in range(3)] + [new_authority(CLUSTER, NOW), authority]
    assert len({one.certificate.serial_number for one in made}) == len({one.key_pem for one in made}) == 5


SUBJECTS = [
    ("1=a", NodeSubject(NodeId(1), ("a", "localhost"))),
    (" 0=A.Example., b ", NodeSubject(NodeId(0), ("a.example", "b", "localhost"))),
    ("7=*.brokers.svc,_x.y", NodeSubject(NodeId(7), ("*.brokers.svc", "_x.y", "localhost"))),
    ("7=localhost,127.0.0.1", NodeSubject(NodeId(7), ("localhost", "127.0.0.1"))),
]


@pytest.mark.parametrize(("text", "want"), SUBJECTS)
def test_nodes(text: str, want: NodeSubject) -> None:
    assert parse_node(text) == want


@pytest.mark.parametrize(
    "text",
    [
        *("", "1", "1=", "1=,", "x=a", "-1=a", "01=a", "2147483648=a", "1=a:9092", "1=a b", "1=grüße", "1=999.1.1.1"),
        *("1=a..b", "1=-a", "1=a/b", "1=" + "a." * 130, "1=" + ",".join(f"h{number}" for number in range(101))),
    ],
)
def test_what_is_no_node_is_refused_with_how_to_say_it(text: str) -> None:
    with pytest.raises(BadRequest, match=r"write|name 1 to 100"):
        parse_node(text)


@pytest.mark.parametrize("text", ["", ".a", "a/b", "a b", "../x", "a" * 65, "ü", "ada.keystore", "ada.librdkafka"])
def test_what_is_no_name_of_a_client_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_client(text)


@given(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,20}", fullmatch=True), st.from_regex(r"[a-z.]{1,20}", fullmatch=True)
)
def test_files_of_two_clients_are_never_the_same(first: str, second: str) -> None:
    endings = (".key", ".pem", ".keystore.pem", ".properties", ".librdkafka.properties", ".toml")
    try:
        one, other = parse_client(first), parse_client(f"{first}{second}")
    except BadRequest:
        return
    files = [{subject.file_name + ending for ending in endings} for subject in (one, other)]
    assert not files[0] & files[1]


# --- the folder ---


def modes(place: Folder) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in place.path.iterdir()}


def test_only_the_owner_reads_keys(tmp_path: Path) -> None:
    place = folder(tmp_path)
    assert {name for name, mode in modes(place).items() if mode != 0o600} == {TRUST}
    assert place.path.stat().st_mode & 0o777 == 0o700 and {"node-1.key", AUTHORITY_KEY} < set(modes(place))
    assert not [name for name in modes(place) if name.startswith(".")]
    assert contents(place)["revoked.txt"] == b"", "a node whose file names it does not start without it"


def test_nothing_is_replaced_without_being_told_to(tmp_path: Path) -> None:
    place = folder(tmp_path)
    before = contents(place)
    with pytest.raises(AlreadyThere, match="node-1, client-ada already"):
        place.issue([parse_node("2=b"), NODE, ADA], replace=False)
    with pytest.raises(AlreadyThere, match="has an authority already"):
        place.create(CLUSTER)
    assert contents(place) == before
    place.issue([parse_node("2=b")], replace=False)
    assert {name: text for name, text in contents(place).items() if name in before} == before
    place.issue([NODE], replace=True)
    assert contents(place)["node-1.key"] != before["node-1.key"]


def contents(place: Folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.path.iterdir()}


def test_a_renewed_certificate_is_for_the_same_names_with_another_key(tmp_path: Path) -> None:
    place = folder(tmp_path)
    before = {one.name: one.certificate for one in place.issued()}
    place.issue([place.subject_of(one) for one in place.issued()], replace=True)
    for one in place.issued():
        old = before[one.name]
        assert one.certificate.public_key() != old.public_key() and one.certificate.subject == old.subject
        assert hosts_of(one.certificate) == hosts_of(old) and node_of(der_of(one.certificate)) == node_of(der_of(old))


def test_certificates_are_listed_by_number_and_name(tmp_path: Path) -> None:
    place = folder(tmp_path, *(parse_node(f"{number}=a") for number in (10, 2)), ADA, parse_client("Zoe"))
    assert [one.name for one in place.issued()] == ["node-2", "node-10", "client-Zoe", "client-ada"]


def test_files_of_two_folders_are_told_apart(tmp_path: Path) -> None:
    place, other = folder(tmp_path), folder(tmp_path / "other")
    place.write(TRUST, (other.path / TRUST).read_bytes(), replace=True)
    with pytest.raises(BadTls, match="one of the two files is of another folder"):
        place.authority()
    assert (
        "not among the trusted" in next(verdicts(place, NOW)).problem
        or "signature" in next(verdicts(place, NOW)).problem
    )


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotThere, match="tls init"):
        Folder(tmp_path, NOW).authority()
    with pytest.raises(NotThere, match="it has: node-1, client-ada"):
        folder(tmp_path).revoke("bob")


def test_a_revoked_certificate_is_noted_once(tmp_path: Path) -> None:
    place = folder(tmp_path)
    assert place.revoke("ada") == place.revoke("client-ada")
    place.revoke("node-1")
    lines = (place.path / "revoked.txt").read_text().splitlines()
    assert [line.split()[1] for line in lines] == ["client-ada", "node-1"] and len(lines[0].split()[0]) == 64


# --- the authority's renewal ---


def judged(place: Folder) -> dict[str, str]:
    return {f"{one.name} {one.host}": one.problem for one in verdicts(place, NOW)}


class Machine:
    """Has copies of the files of some step."""

    def __init__(self, place: Folder, name: str) -> None:
        self.name = name
        self.take(place)

    def take(self, place: Folder) -> None:
        self.trust = (place.path / TRUST).read_bytes()
        self.keystore = (place.path / f"{self.name}.keystore.pem").read_bytes()


def meet(one: Machine, other: Machine, path: Path) -> str:
    """Empty: each trusts the other, with the files that they have now."""
    problems = []
    for shows, judges in ((one, other), (other, one)):
        both = Folder(path, NOW)
        both.write(TRUST, judges.trust, 0o644, replace=True)
        both.write(f"{shows.name}.keystore.pem", shows.keystore, replace=True)
        problems += [verdict.problem for verdict in verdicts(both, NOW) if verdict.problem]
        (path / f"{shows.name}.keystore.pem").unlink()
    return "; ".join(problems)


def test_nobody_is_refused_while_the_authority_is_renewed_by_three_rolls(tmp_path: Path) -> None:
    """At each moment of each roll: machines that have the new files meet such as have those of the step before."""
    second = parse_node("2=host2.example")
    place = folder(tmp_path, NODE, second)
    (tmp_path / "meeting").mkdir()
    first = place.trusted()[0]
    machines = [Machine(place, "node-1"), Machine(place, "node-2")]
    for step in (1, 2, 3):
        assert renew_authority(place, NOW).number == step
        for machine in machines:
            machine.take(place)
            assert meet(*machines, tmp_path / "meeting") == ""
    (renewed,) = place.trusted()
    assert renewed.subject == first.subject and renewed.public_key() != first.public_key()
    assert next_step(place) == 1 and not (place.path / NEXT_KEY).exists()


@pytest.mark.parametrize("at", range(12))
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_step_that_is_cut_short_is_repeated(
    step: int, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before its write number `at`: all files still work together, and the same command ends the renewal."""
    place = folder(tmp_path)
    for _ in range(step - 1):
        renew_authority(place, NOW)
    real, left = Folder.write, [at]

    def write(self: Folder, name: str, data: bytes, mode: int = 0o600, *, replace: bool = False) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        real(self, name, data, mode, replace=replace)

    monkeypatch.setattr(Folder, "write", write)
    try:
        renew_authority(place, NOW)
    except KeyboardInterrupt:
        monkeypatch.setattr(Folder, "write", real)
        assert set(judged(place).values()) == {""}
    monkeypatch.setattr(Folder, "write", real)
    for _ in range(5):
        if next_step(place) == 1:
            break
        renew_authority(place, NOW)
        assert set(judged(place).values()) == {""}
    assert next_step(place) == 1 and len(place.trusted()) == 1
    assert place.authority().certificate == place.trusted()[0]


def test_the_first_authority_stays_while_something_is_issued_by_it(tmp_path: Path) -> None:
    place = folder(tmp_path)
    old = (place.path / "client-ada.keystore.pem").read_bytes()
    renew_authority(place, NOW)
    renew_authority(place, NOW)
    place.write("client-ada.keystore.pem", old, replace=True)
    with pytest.raises(BadTls, match="client-ada: issued by the first authority"):
        renew_authority(place, NOW)
    assert len(place.trusted()) == 2


# --- what clients read ---


def read_properties(text: str) -> dict[str, str]:
    """As java.util.Properties: a backslash takes the meaning from what is behind it, or gives it one."""
    found = {}
    for line in text.split("\n"):
        if not line.startswith("#") and line:
            key, _, value = line.partition("=")
            out, at, value = [], 0, value.lstrip(" \t\f")
            while at < len(value):
                sign, at = value[at], at + 1
                if sign == "\\":
                    sign, at = value[at], at + 1
                    if sign == "u":
                        sign, at = chr(int(value[at : at + 4], 16)), at + 4
                    else:
                        sign = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}.get(sign, sign)
                out.append(sign)
            found[key] = "".join(out).encode("utf-16", "surrogatepass").decode("utf-16")
    return found


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_java_reads_a_path_as_it_is(path: str) -> None:
    text = java_value(path)
    assert text == "" or (text.isascii() and text.isprintable())
    assert read_properties(f"ssl.truststore.location={text}\n") == {"ssl.truststore.location": path}


def test_clients_get_files_for_each_family(tmp_path: Path) -> None:
    place = folder(tmp_path / "a folder")
    place.write_common_client_files()
    java = read_properties((place.path / "client-ada.properties").read_text())
    assert java["ssl.keystore.location"] == str(place.path / "client-ada.keystore.pem")
    assert java["security.protocol"] == "SSL" and java["ssl.truststore.type"] == java["ssl.keystore.type"] == "PEM"
    librdkafka = (place.path / "client-ada.librdkafka.properties").read_text()
    assert f"ssl.key.location={place.path}/client-ada.key\n" in librdkafka
    assert "keystore" not in (place.path / "client.properties").read_text()
    assert f'ssl_truststore_location = "{place.path}/ca.pem"' in (place.path / "client-ada.toml").read_text()


def test_an_issued_pair_shows_no_key() -> None:
    made: Pair = new_authority(CLUSTER, NOW)
    assert "PRIVATE" not in repr(made) and "key=" not in repr(made)
