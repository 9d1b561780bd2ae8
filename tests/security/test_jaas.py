"""`sasl.jaas.config`: as Java reads it, or an error that gives the place and not the value (case S4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.security.jaas import JaasEntry, read_jaas, show_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"

READ = [
    ("quoted", f'{PLAIN} required username="alice" password="x";', {"username": "alice", "password": "x"}),
    ("bare", f"{PLAIN} required username=alice password=a-b.c_1$;", {"username": "alice", "password": "a-b.c_1$"}),
    ("single quotes", f"{PLAIN} required password='a\"b';", {"password": 'a"b'}),
    ("escapes", rf'{PLAIN} required password="a\"b\\c\td\101\7";', {"password": 'a"b\\c\tdA\x07'}),
    ("octal ends", rf'{PLAIN} required password="\4567\18";', {"password": "\u00256" + "7\x018"}),
    (
        "lines and comments",
        f'{PLAIN} required // a\n /* b */ username="u"\n password = p ;\n',
        {"username": "u", "password": "p"},
    ),
    ("quoted key", f'{PLAIN} required "user_ops,eu=1"="p";', {"user_ops,eu=1": "p"}),
    ("slash in quotes", f'{PLAIN} required password="a/b//c";', {"password": "a/b//c"}),
    ("nothing", f"{PLAIN} Required;", {}),
]


@pytest.mark.parametrize(("text", "wanted"), [one[1:] for one in READ], ids=[one[0] for one in READ])
def test_it_is_read_as_java_does(text: str, wanted: dict[str, str]) -> None:
    assert read_jaas(text).options == wanted


SECRET = "s3cret"
REFUSED = [
    ("at sign", f"{PLAIN} required password={SECRET}@host;", "character 81"),
    ("slash", f"{PLAIN} required password={SECRET}/x;", "double quotes"),
    ("digit first", f"{PLAIN} required password=1{SECRET};", "double quotes"),
    ("dash first", f"{PLAIN} required password=-{SECRET};", "double quotes"),
    ("open quote", f'{PLAIN} required password="{SECRET};', "does not end"),
    ("quote over lines", f'{PLAIN} required password="{SECRET}\n";', "does not end"),
    ("no semicolon", f'{PLAIN} required password="{SECRET}"', "semicolon"),
    ("no value", f"{PLAIN} required password=;", "a value"),
    ("no equals", f'{PLAIN} required password "{SECRET}";', "no ="),
    ("key twice", f"{PLAIN} required password={SECRET} password={SECRET};", "twice"),
    ("two entries", f"{PLAIN} required; {SCRAM} required password={SECRET};", "more than one"),
    ("flag", f"{PLAIN} perhaps password={SECRET};", "required"),
    ("other module", f"com.sun.security.auth.module.JndiLoginModule required password={SECRET};", "not known"),
    ("Kerberos", "com.sun.security.auth.module.Krb5LoginModule required;", "Kerberos"),
    ("empty", "", "ends"),
]


@pytest.mark.parametrize(("text", "says"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
def test_what_java_would_cut_is_an_error_without_the_value(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        read_jaas(text)
    assert SECRET not in str(refused.value)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text(max_size=20), max_size=3))
def test_what_is_shown_is_read_back(options: dict[str, str]) -> None:
    assert read_jaas(show_jaas("SCRAM", options)) == JaasEntry("SCRAM", options)


def test_an_entry_does_not_show_its_values() -> None:
    assert SECRET not in repr(read_jaas(f"{PLAIN} required password={SECRET};"))
