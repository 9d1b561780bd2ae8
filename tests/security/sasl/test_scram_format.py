"""The text of `storage format --add-scram`: what it says, and every mistake."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.security.sasl.scram_format import BadUser, FirstUser, parse_first_user
from quorumlog.security.sasl.stored_keys import ScramMechanism, salted_password, stored_credential

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
B64 = base64.b64encode(b"salt").decode()
SALTED = base64.b64encode(b"p" * 32).decode()

SAYS: list[tuple[str, FirstUser]] = [
    ("SCRAM-SHA-512=[name=a,password=p]", FirstUser(name="a", mechanism=SHA_512, password="p")),
    (" SCRAM-SHA-256 = [ name = a , password = p ] ", FirstUser(name="a", mechanism=SHA_256, password="p")),
    ('SCRAM-SHA-256=[name="a",password="p"]', FirstUser(name="a", mechanism=SHA_256, password="p")),
    ('SCRAM-SHA-256=[name="ops,eu=1",password="a,b"]', FirstUser(name="ops,eu=1", mechanism=SHA_256, password="a,b")),
    ("SCRAM-SHA-256=[name=a,password=x=y]", FirstUser(name="a", mechanism=SHA_256, password="x=y")),
    (
        "SCRAM-SHA-256=[name=a,password=p,iterations=16384]",
        FirstUser(name="a", mechanism=SHA_256, password="p", iterations=16_384),
    ),
    (
        f"SCRAM-SHA-256=[name=a,salt={B64},saltedpassword={SALTED}]",
        FirstUser(name="a", mechanism=SHA_256, salt=b"salt", salted=b"p" * 32),
    ),
    (
        f"SCRAM-SHA-256=[name=a,password=p,salt={B64}]",
        FirstUser(name="a", mechanism=SHA_256, password="p", salt=b"salt"),
    ),
]


@pytest.mark.parametrize(("text", "want"), SAYS)
def test_says(text: str, want: FirstUser) -> None:
    assert parse_first_user(text) == want


MISTAKES = [
    "",
    "[name=a,password=p]",
    "SCRAM-SHA-1=[name=a,password=p]",
    "SCRAM-SHA-512",
    "SCRAM-SHA-512=name=a,password=p",
    "SCRAM-SHA-512=[]",
    "SCRAM-SHA-512=[name=a]",
    "SCRAM-SHA-512=[name=,password=p]",
    "SCRAM-SHA-512=[password=p]",
    "SCRAM-SHA-512=[name=a,password=]",
    "SCRAM-SHA-512=[name=a,name=b,password=p]",
    "SCRAM-SHA-512=[name=a,password=p,color=red]",
    "SCRAM-SHA-512=[name=a,password]",
    "SCRAM-SHA-512=[name=a,password=p,]",
    'SCRAM-SHA-512=[name="a,password=p]',
    f"SCRAM-SHA-256=[name=a,saltedpassword={SALTED}]",
    f"SCRAM-SHA-256=[name=a,password=p,salt={B64},saltedpassword={SALTED}]",
    f"SCRAM-SHA-512=[name=a,salt={B64},saltedpassword={SALTED}]",
    "SCRAM-SHA-256=[name=a,password=p,salt=%%]",
    'SCRAM-SHA-256=[name=a,password=p,salt=""]',
    "SCRAM-SHA-256=[name=a,password=p,iterations=4095]",
    "SCRAM-SHA-256=[name=a,password=p,iterations=16385]",
    "SCRAM-SHA-256=[name=a,password=p,iterations=-1]",
    "SCRAM-SHA-256=[name=a,password=p,iterations=\u0664\u0660\u0669\u0666]",
]


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_told(text: str) -> None:
    with pytest.raises(BadUser):
        parse_first_user(text)


@given(st.text(max_size=60), st.sampled_from(["canary", '"canary,x"', "canary,oops"]))
def test_no_mistake_tells_the_password(junk: str, password: str) -> None:
    try:
        user = parse_first_user(f"SCRAM-SHA-512=[name=a,password={password},{junk}]")
    except BadUser as error:
        assert "canary" not in str(error) or "canary" in junk
    else:
        assert "canary" not in repr(user)


SIGNED = st.text(st.characters(codec="utf-8", exclude_characters='"'), min_size=1, max_size=20)


@given(name=SIGNED, password=SIGNED)
def test_quoted_names_and_passwords_may_have_any_sign(name: str, password: str) -> None:
    user = parse_first_user(f'SCRAM-SHA-512=[name="{name}",password="{password}"]')
    assert (user.name, user.password) == (name, password)


def test_a_salt_comes_from_the_seed_unless_it_is_given() -> None:
    user = FirstUser(name="a", mechanism=SHA_256, password="p")
    assert user.credential(b"seed") == user.credential(b"seed") != user.credential(b"other")
    fixed = FirstUser(name="a", mechanism=SHA_256, password="p", salt=b"salt")
    want = stored_credential(SHA_256, salted_password(SHA_256, "p", b"salt", 4096), b"salt", 4096)
    assert fixed.credential(b"seed") == fixed.credential(b"other") == want


def test_the_examples_of_rfc_7677() -> None:
    """Section 3; the stored and server key are recomputed from its proof and signature."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    kept = stored_credential(SHA_256, salted_password(SHA_256, "pencil", salt, 4096), salt, 4096)
    assert base64.b64encode(kept.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(kept.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
