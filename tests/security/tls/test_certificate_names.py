"""From the bytes of a certificate to a name, a principal, a node: as Java and Apache Kafka do it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.ids import NodeId
from quorumlog.security.principal import Principal
from quorumlog.security.tls.der import BadDer, read_elements, read_oid
from quorumlog.security.tls.distinguished_name import read_name
from quorumlog.security.tls.mapping import BadRules, parse_rules
from quorumlog.security.tls.peer import (
    ClusterNode,
    fingerprint,
    node_of,
    node_uri,
    principal_of,
    read_alternative_names,
    read_not_after_ms,
    read_subject,
)
from tests.security.tls import java_answers
from tests.security.tls.certificates import NOW, authority, leaf, name
from tests.security.tls.java_answers import oid, tlv

CA = authority()
DEFAULT = parse_rules("DEFAULT")
UTF8, PRINTABLE, IA5 = 0x0C, 0x13, 0x16
EMAIL = "1.2.840.113549.1.9.1"


def der_name(*parts: list[tuple[str, int, str]]) -> bytes:
    """In the order of the bytes, which is the reverse of the text."""
    return tlv(0x30, b"".join(tlv(0x31, b"".join(_attribute(*one) for one in part)) for part in parts))


def _attribute(kind: str, tag: int, value: str) -> bytes:
    return tlv(0x30, oid(kind) + tlv(tag, value.encode()))


GOLDENS = [
    (
        r"1.2.840.113549.1.9.1=#16056140622e63,CN=alice,OU=Eng\,Ops,O=Acme,C=CH",
        [("2.5.4.6", PRINTABLE, "CH")],
        [("2.5.4.10", UTF8, "Acme")],
        [("2.5.4.11", UTF8, "Eng,Ops")],
        [("2.5.4.3", UTF8, "alice")],
        [(EMAIL, IA5, "a@b.c")],
    ),
    (
        r"CN=admin\,OU\=x,OU=eng,O=Acme",
        [("2.5.4.10", UTF8, "Acme")],
        [("2.5.4.11", UTF8, "eng")],
        [("2.5.4.3", UTF8, "admin,OU=x")],
    ),
    (r"CN=a,2.5.4.5=#13023432", [("2.5.4.5", PRINTABLE, "42")], [("2.5.4.3", UTF8, "a")]),
    (r"CN=\ a\ \ ", [("2.5.4.3", UTF8, " a  ")]),
    (r"CN=\ ", [("2.5.4.3", UTF8, " ")]),
    ("OU=b+CN=a", [("2.5.4.11", UTF8, "b"), ("2.5.4.3", UTF8, "a")]),
    ("",),
]


@pytest.mark.parametrize("golden", GOLDENS, ids=[str(golden[0]) for golden in GOLDENS])
def test_names_that_the_rules_are_written_for(golden: Any) -> None:
    assert read_name(der_name(*golden[1:])) == golden[0]


def test_every_name_is_printed_as_java_prints_it() -> None:
    rows = [line.split("\t") for line in java_answers.NAMES.read_text().splitlines()]
    wrong = [row for row in rows if read_name(bytes.fromhex(row[0])) != json.loads(row[1])]
    assert wrong == [] and len(rows) == java_answers.COUNT


def test_every_rule_maps_as_kafka_maps_it() -> None:
    rows = [tuple(map(json.loads, line.split("\t"))) for line in java_answers.RULES.read_text().splitlines()]
    wanted = [(asked, "-" if told == "=" else told) for asked, told in rows]  # there a principal may be without a name
    wrong = [(asked, told) for asked, told in wanted if mapped(*asked) != told]
    assert wrong == [] and len(rows) > java_answers.COUNT


def mapped(rules: str, dn: str) -> str:
    """As java_answers writes it."""
    try:
        found = parse_rules(rules).name_of(dn)
    except BadRules:
        return "!"
    return "-" if found is None else f"={found}"


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=4))
def test_no_value_of_a_name_forges_a_part_of_it(values: list[str]) -> None:
    """A second reader, which knows only that `\\` takes the meaning from the sign behind it, finds the values again."""
    text = read_name(der_name(*([("2.5.4.3", UTF8, value)] for value in reversed(values))))
    parts = re.findall(r"CN=((?:\\.|[^\\,])*)(?:,|\Z)", text, re.DOTALL)
    assert len(parts) == len(values) and ",".join(f"CN={part}" for part in parts) == text
    unescaped = [re.sub(r"\\(00|.)", lambda m: "\0" if m[1] == "00" else m[1], part, flags=re.DOTALL) for part in parts]
    assert unescaped == values


@given(st.text(st.characters(codec="utf-8", exclude_characters="\\/"), max_size=30))
def test_a_replacement_without_signs_is_taken_as_it_is(text: str) -> None:
    replacement = text.replace("$", r"\$")
    assert parse_rules(f"RULE:^CN=a$/{replacement}/").name_of("CN=a") == (text or None)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("RULE:^CN=(?!x).*$/y/", "RE2"),
        (r"RULE:^(a)\1$/y/", "RE2"),
        ("RULE:^CN=(.*/y/", "RE2"),
        ("RULE:^CN=.*$/$1/", "the pattern has none"),
        ("RULE:^CN=(.*)$/a$/", "stands for itself"),
        ("RULE:^CN=(.*)$/${user}/", "stands for itself"),
        ("RULE:/x/", "has no pattern"),
        ("RULE:^CN=(.*)$/$1/,nonsense", "`nonsense` is no rule"),
        ("a" * 20_000, "20000 characters"),
    ],
)
def test_rules_that_could_only_fail_later_are_refused_at_once(rules: str, said: str) -> None:
    with pytest.raises(BadRules) as refused:
        parse_rules(rules)
    assert said in str(refused.value) and len(str(refused.value)) < 300


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028"])
def test_a_name_with_a_line_end_fits_no_pattern(end: str) -> None:
    assert parse_rules("RULE:^CN=([^,]*).*$/$1/").name_of(f"CN=alice{end},O=x") is None


def test_no_name_makes_a_pattern_search_without_end() -> None:
    assert parse_rules("RULE:^(CN=)?((a+)+)+b$/x/").name_of("CN=" + "a" * 4_000) is None


# Two ways to pass for another one: a name inside a value, and parts that come in another order or twice.
RULES = parse_rules("RULE:^CN=([a-z]+),OU=Staff,O=Acme$/$1/")
FORGERIES = [
    ("itself", [("2.5.4.10", UTF8, "Acme")], [("2.5.4.11", UTF8, "Staff")], [("2.5.4.3", UTF8, "root")]),
    ("inside a value", [("2.5.4.10", UTF8, "Acme")], [("2.5.4.3", UTF8, "root,OU=Staff")]),
    ("another order", [("2.5.4.11", UTF8, "Staff")], [("2.5.4.10", UTF8, "Acme")], [("2.5.4.3", UTF8, "root")]),
    (
        "twice",
        [("2.5.4.10", UTF8, "Acme")],
        [("2.5.4.11", UTF8, "Staff")],
        [("2.5.4.3", UTF8, "a")],
        [("2.5.4.3", UTF8, "root")],
    ),
    ("in one part", [("2.5.4.10", UTF8, "Acme")], [("2.5.4.11", UTF8, "Staff"), ("2.5.4.3", UTF8, "root")]),
]


@pytest.mark.parametrize("case", FORGERIES, ids=[str(case[0]) for case in FORGERIES])
def test_a_rule_takes_no_name_that_only_looks_like_its_own(case: Any) -> None:
    """CVE-2026-33248: a name was compared part by part, whatever the order and the number of its parts."""
    assert RULES.name_of(read_name(der_name(*case[1:]))) == ("root" if case[0] == "itself" else None)


def test_a_certificate_gives_a_principal_by_the_rules_or_none_at_all() -> None:
    pair = leaf(CA, name("alice", ORGANIZATION_NAME="Acme"))
    assert read_subject(pair.der) == "CN=alice,O=Acme"
    assert principal_of(pair.der, DEFAULT) == Principal("User", "CN=alice,O=Acme")
    assert principal_of(pair.der, parse_rules("RULE:^CN=([^,]+).*$/$1/U")) == Principal("User", "ALICE")
    for rules in ("RULE:^CN=bob$/x/", "", "RULE:^CN=(a)?.*$//", "RULE:^.*$/ANONYMOUS/"):
        assert principal_of(pair.der, parse_rules(rules)) is None


def test_a_common_name_alone_is_no_user() -> None:
    """CVE-2018-16886 (etcd): whoever is called like a SCRAM user is not that user, unless a rule says so."""
    assert principal_of(leaf(CA, "alice").der, DEFAULT) != Principal("User", "alice")


@pytest.mark.parametrize(
    ("uris", "want"),
    [
        (["quorumlog://c-_1/node/7"], ClusterNode("c-_1", NodeId(7))),
        (["https://x/", "quorumlog://c/node/0"], ClusterNode("c", NodeId(0))),
        (["quorumlog://c/node/7", "quorumlog://c/node/8"], None),
        (["quorumlog://c/node/07"], None),
        (["quorumlog://c/node/7/"], None),
        (["quorumlog://c/node/7?x"], None),
        (["QUORUMLOG://c/node/7"], None),
        (["quorumlog://c/node/2147483648"], None),
        (["quorumlog:///node/7"], None),
        ([], None),
    ],
)
def test_a_node_is_known_by_its_one_uri(uris: list[str], want: ClusterNode | None) -> None:
    pair = leaf(CA, "node-7", dns=("quorumlog://c/node/7",) if not uris else ("localhost",), uri=tuple(uris))
    assert node_of(pair.der) == want
    if want is not None:
        assert node_uri(want) in uris


@pytest.mark.parametrize(
    "node", [ClusterNode("a/b", NodeId(1)), ClusterNode("", NodeId(1)), ClusterNode("a", NodeId(2**31))]
)
def test_a_uri_that_could_not_be_read_is_not_written(node: ClusterNode) -> None:
    with pytest.raises(ValueError, match="letters, digits"):
        node_uri(node)


def test_a_fingerprint_is_that_of_openssl() -> None:
    pair = leaf(CA)
    assert fingerprint(pair.der) == pair.certificate.fingerprint(hashes.SHA256()).hex()


@pytest.mark.parametrize("year", [1990, 2049, 2050, 2120])
def test_the_end_of_a_certificate(year: int) -> None:
    """Two figures for the year until 2049, four from then on (RFC 5280)."""
    end = NOW.replace(year=year, day=1)
    pair = leaf(CA, not_before=NOW.replace(year=1980, day=1), not_after=end)
    assert read_not_after_ms(pair.der) == int(end.timestamp()) * 1000


def test_alternative_names_are_read_in_their_order() -> None:
    pair = leaf(CA, dns=("a", "b"), ip=("127.0.0.1",))
    assert read_alternative_names(pair.der) == ((0x82, b"a"), (0x82, b"b"), (0x87, b"\x7f\0\0\1"))
    assert read_alternative_names(leaf(CA).der) == ()


@given(st.binary(max_size=60))
def test_any_bytes_are_elements_or_an_error(data: bytes) -> None:
    try:
        found = list(read_elements(data))
    except BadDer:
        return
    assert b"".join(one.whole for one in found) == data and all(one.whole.endswith(one.content) for one in found)


@given(st.integers(0, 2), st.integers(0, 39), st.lists(st.integers(0, 2**40), max_size=4))
def test_object_identifiers_are_read_as_they_are_written(first: int, second: int, rest: list[int]) -> None:
    dotted = ".".join(map(str, (first, second, *rest)))
    assert read_oid(oid(dotted)[2:]) == dotted == x509.ObjectIdentifier(dotted).dotted_string


def test_damaged_certificates_have_no_name() -> None:
    der = leaf(CA, "alice", uri=("quorumlog://c/node/7",)).der
    for end in range(0, len(der), 7):
        assert principal_of(der[:end], DEFAULT) is None and node_of(der[:end]) is None
