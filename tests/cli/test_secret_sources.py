"""Where a secret of a profile is: in the environment, in a file or in a keyring. It is read when a command connects."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from quorumlog.client.security.sources import MAX_SECRET_BYTES
from quorumlog.security.secret import HIDDEN
from quorumlog_cli.profiles.client_security import expanded, hidden, refuse_secrets, with_secrets
from quorumlog_cli.terminal.errors import CliError, Exit

CANARY = "canary-3391"
ENTRIES = {("kafka", "ada"): CANARY, ("a/b", "ada"): "of a service with a slash"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A backend of keyring that has two entries, a variable, and files."""

    def get_password(service: str, user: str) -> str | None:
        return ENTRIES.get((service, user))

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=get_password))
    monkeypatch.setenv("PASSWORD_OF_ADA", CANARY)
    monkeypatch.delenv("NOT_SET", raising=False)
    (tmp_path / "password").write_text(f"{CANARY}\r\n")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "large").write_text("x" * (MAX_SECRET_BYTES + 1))
    (tmp_path / "bytes").write_bytes(b"\xff")
    return tmp_path


def test_a_profile_is_no_file_of_properties() -> None:
    """`up --tls` writes client.toml beside client.properties; its quotes were taken for a part of each value."""
    with pytest.raises(CliError, match=r"client.toml: it is a profile, .* as in the .properties file beside it"):
        expanded(["client.toml"])


SCRAM_LINE = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{}" password="{}";'
SOURCES = [
    ("keyring:kafka/ada", CANARY),
    ("keyring:a/b/ada", "of a service with a slash"),
    ("env:PASSWORD_OF_ADA", CANARY),
    ("file:PLACE/password", CANARY),
    (CANARY, CANARY),
    ("other:thing", "other:thing"),
]


@pytest.mark.parametrize(("source", "want"), SOURCES)
def test_a_secret_is_read_where_it_is(place: Path, source: str, want: str) -> None:
    given = {"sasl_password": source.replace("PLACE", str(place)), "sasl_username": "env:PASSWORD_OF_ADA"}
    assert with_secrets(given) == {"sasl_password": want, "sasl_username": "env:PASSWORD_OF_ADA"}
    is_clear = want == source
    assert hidden(given)["sasl_password"] == (HIDDEN if is_clear else given["sasl_password"])
    if is_clear:
        with pytest.raises(CliError, match="a profile keeps no secret in clear"):
            refuse_secrets(given)
    else:
        refuse_secrets(given)


PARTS = [
    ("sasl_jaas_config", SCRAM_LINE.format("ada", "${env:PASSWORD_OF_ADA}"), False),
    ("sasl_jaas_config", SCRAM_LINE.format("${env:USER}", CANARY), True),
    ("sasl_jaas_config", SCRAM_LINE.format("ada", CANARY + "${env:PASSWORD_OF_ADA}"), True),
    ("sasl_password", "${env:PASSWORD_OF_ADA}", False),
    ("sasl_password", CANARY + "${env:PASSWORD_OF_ADA}", True),
]


@pytest.mark.parametrize(("name", "value", "is_clear"), PARTS)
def test_a_source_hides_no_secret_that_stands_beside_it(name: str, value: str, is_clear: bool) -> None:
    assert hidden({name: value})[name] == (HIDDEN if is_clear else value)
    if is_clear:
        with pytest.raises(CliError, match="a profile keeps no secret in clear"):
            refuse_secrets({name: value})
    else:
        refuse_secrets({name: value})


MISSING = [
    (
        "keyring:kafka/bob",
        Exit.USAGE,
        "there is no such entry; `keyring set SERVICE USER` makes one",
    ),
    ("keyring:ada", Exit.USAGE, "there is no such entry"),
    ("env:NOT_SET", Exit.USAGE, "there is no variable NOT_SET; set it"),
    ("file:PLACE/none", Exit.USAGE, "it cannot be read (No such file"),
    ("file:PLACE/bytes", Exit.USAGE, "it cannot be read (it is no text)"),
    ("file:PLACE/empty", Exit.USAGE, "it has no secret of 1 to"),
    ("file:PLACE/large", Exit.USAGE, "it has no secret of 1 to"),
]


@pytest.mark.parametrize(("source", "code", "message"), MISSING)
def test_one_that_is_not_there_is_named_by_its_place(place: Path, source: str, code: Exit, message: str) -> None:
    with pytest.raises(CliError) as found:
        with_secrets({"sasl_password": source.replace("PLACE", str(place))})
    assert found.value.code is code and message in found.value.message and CANARY not in found.value.message


def test_without_keyring_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(CliError) as found:
        with_secrets({"sasl_password": "keyring:kafka/ada"})
    assert found.value.code is Exit.PRECONDITION and "install quorumlog[keyring]" in found.value.message
