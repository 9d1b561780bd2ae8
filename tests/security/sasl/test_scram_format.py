"""`--add-scram`: what is read, what is an error, and what becomes of it."""

from __future__ import annotations

import base64

import pytest

from quorumlog.security.sasl.mechanism import SCRAM_SHA_256, SCRAM_SHA_512
from quorumlog.security.sasl.scram_format import (
    InClear,
    InEnvironment,
    InFile,
    PasswordSource,
    ScramArgument,
    make_credential,
    read_password,
    read_scram_argument,
)
from quorumlog.security.sasl.scram_keys import salted_password
from quorumlog.security.secret import Secret

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SALTED = base64.b64encode(salted_password("pencil", SALT, 4096, "sha256")).decode()
CANARY = "canary"

SOURCES: list[tuple[str, PasswordSource]] = [
    ("p", InClear(Secret("p"))),
    ('"p"', InClear(Secret("p"))),
    ('"', InClear(Secret('"'))),
    ("p=q[]", InClear(Secret("p=q[]"))),
    ("@/run/secrets/ada", InFile("/run/secrets/ada")),
    ("env:ADA", InEnvironment("ADA")),
]


@pytest.mark.parametrize(("password", "source"), SOURCES)
@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_where_the_password_is(mechanism: str, password: str, source: PasswordSource) -> None:
    assert read_scram_argument(f"{mechanism}=[name=ada,password={password}]") == ScramArgument(
        mechanism=mechanism, name="ada", iterations=4096, password=source, salt=None, salted_password=None
    )


def test_blanks_and_quotes_as_in_kafka_s_own_example() -> None:
    one = read_scram_argument(f'SCRAM-SHA-256=[name="ada", iterations=8192, salt="AAAA", saltedpassword="{SALTED}"]')
    assert (one.name, one.iterations, one.salt, one.salted_password) == ("ada", 8192, bytes(3), Secret(SALTED))
    assert SALTED not in repr(one)


BAD = [
    ("empty", "", "begin with"),
    ("endless", f"SCRAM-SHA-256=[name=a,password={CANARY}{'x' * 9000}]", "8192 are allowed"),
    ("another mechanism", f"PLAIN=[name=a,password={CANARY}]", "SCRAM-SHA-512="),
    ("no brackets", f"SCRAM-SHA-256=name=a,password={CANARY}", "must stand"),
    ("no name", f"SCRAM-SHA-256=[password={CANARY}]", "`name`"),
    ("an empty name", f"SCRAM-SHA-256=[name=,password={CANARY}]", "`name` is empty"),
    ("a name that is not ASCII", f"SCRAM-SHA-256=[name=ädä,password={CANARY}]", "ASCII"),
    ("no password", "SCRAM-SHA-256=[name=a]", "one of `password`"),
    ("an empty password", "SCRAM-SHA-256=[name=a,password=]", "`password` is empty"),
    ("both", f"SCRAM-SHA-256=[name=a,password={CANARY},salt=AAAA,saltedpassword={SALTED}]", "one of `password`"),
    ("no salt", f"SCRAM-SHA-256=[name=a,saltedpassword={SALTED}]", "needs the `salt`"),
    ("an unknown key", f"SCRAM-SHA-256=[name=a,pasword={CANARY}]", "part 2"),
    ("a comma in the password", f"SCRAM-SHA-256=[name=a,password=p,{CANARY}]", "part 3"),
    ("a comma in quotes", f'SCRAM-SHA-256=[name=a,password="p,{CANARY}"]', "password=@FILE"),
    ("a key twice", f"SCRAM-SHA-256=[name=a,password=p,password={CANARY}]", "twice"),
    ("few iterations", f"SCRAM-SHA-256=[name=a,password={CANARY},iterations=4095]", "4096 to 16384"),
    ("many iterations", f"SCRAM-SHA-256=[name=a,password={CANARY},iterations=16385]", "4096 to 16384"),
    ("no number", f"SCRAM-SHA-256=[name=a,password={CANARY},iterations=٤٠٩٦]", "4096 to 16384"),
    ("a salt that is no base64", f"SCRAM-SHA-256=[name=a,salt=!,saltedpassword={SALTED}]", "`salt` is not base64"),
    ("a salted password of the other hash", f"SCRAM-SHA-512=[name=a,salt=AAAA,saltedpassword={SALTED}]", "64 bytes"),
]


@pytest.mark.parametrize(("text", "why"), [c[1:] for c in BAD], ids=[c[0] for c in BAD])
def test_an_error_tells_what_is_wrong_and_no_value(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="--add-scram") as refused:
        read_scram_argument(text)
    said = str(refused.value)
    assert why in said and CANARY not in said and SALTED not in said


def no_file(path: str) -> str:
    raise FileNotFoundError(2, "No such file", path)


def test_passwords_are_read_from_their_places() -> None:
    assert read_password(InClear(Secret("p")), no_file, {}) == Secret("p")
    assert read_password(InEnvironment("ADA"), no_file, {"ADA": "p q,="}) == Secret("p q,=")
    for content in ("p,q", "p,q\n", "p,q\r\n", "p,q\nmore\n"):
        assert read_password(InFile("/f"), lambda path, content=content: content, {}) == Secret("p,q")  # type: ignore[misc]


@pytest.mark.parametrize("source", [InEnvironment("ADA"), InFile("/f")])
def test_a_place_without_a_password_is_named(source: PasswordSource) -> None:
    with pytest.raises(ValueError, match=r"ADA|/f"):
        read_password(source, no_file, {})
    with pytest.raises(ValueError, match="holds no password"):
        read_password(source, lambda path: "\n", {"ADA": ""})


def test_a_password_and_the_salted_one_make_the_same_credential() -> None:
    """That of RFC 7677's example."""
    clear = make_credential(read_scram_argument("SCRAM-SHA-256=[name=user,password=pencil]"), Secret("pencil"), SALT)
    salt = base64.b64encode(SALT).decode()
    salted = read_scram_argument(f"SCRAM-SHA-256=[name=user,salt={salt},saltedpassword={SALTED}]")
    assert clear == make_credential(salted, None, b"unused")
    assert base64.b64encode(clear.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="


def test_a_salt_may_be_given_with_a_password() -> None:
    one = read_scram_argument("SCRAM-SHA-512=[name=user,password=pencil,salt=AAAA,iterations=8192]")
    made = make_credential(one, Secret("pencil"), b"unused")
    assert (made.salt, made.iterations, len(made.stored_key)) == (bytes(3), 8192, 64)
