"""`quorumlog user` and `quorumlog quota`: what they ask of the cluster and print, and where passwords come from."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.administration.quotas import QuotaChange, QuotaOutcome
from quorumlog.client.administration.users import DeleteCredential, SetPassword, UserOutcome
from quorumlog.errors import ErrorCode
from quorumlog.messages.quotas import DescribeQuotaUseResponse, QuotaUse
from quorumlog.security.sasl.scram_mechanism import ScramMechanism
from quorumlog_cli.commands.security import quota, user
from quorumlog_cli.main import main
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.password import read_password

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
IN = "producer_byte_rate"
ADA = (("user", "ada"),)


class FakeAdmin:
    def __init__(self) -> None:
        self.users = {"ada": {SHA_256: 4096, SHA_512: 8192}, "bob": {SHA_512: 4096}}
        self.changes: list[Any] = []
        self.refuse = ErrorCode.NONE
        self.quotas: dict[Any, dict[str, float]] = {
            ADA: {IN: 1024.0, "request_percentage": 12.5},
            (("client-id", None),): {IN: 5.0},
            (("client-id", "(default)"),): {IN: 6.0},
        }
        self.asked: list[Any] = []

    def describe_user_scram_credentials(self, users: Iterable[str] | None = None) -> Any:
        names = None if users is None else set(users)
        return {name: found for name, found in self.users.items() if names is None or name in names}

    def alter_user_scram_credentials(self, changes: Iterable[Any]) -> dict[Any, UserOutcome]:
        self.changes += changes
        return {change: UserOutcome(self.refuse, "why") for change in self.changes}

    def describe_client_quotas(self, wanted: Mapping[str, Any], *, strict: bool = False) -> Any:
        self.asked.append((wanted, strict))
        return {one: values for one, values in self.quotas.items() if not strict or dict(one) == wanted}

    def describe_quota_use(self, *, max_results: int, silent: dict[int, str]) -> dict[int, DescribeQuotaUseResponse]:
        self.asked.append(max_results)
        silent[3] = "connection refused"
        slow = QuotaUse(key=IN, user="ada", rate=20.0, quota=80.0, throttled_ms=0)
        fast = QuotaUse(key="request_percentage", user="bob", client_id="", rate=15.0, quota=10.0, throttled_ms=2_500)
        return {1: DescribeQuotaUseResponse(uses=(slow,)), 2: DescribeQuotaUseResponse(uses=(fast, slow))}

    def alter_client_quotas(self, changes: Iterable[QuotaChange], *, validate_only: bool = False) -> Any:
        self.changes += changes
        self.asked.append(validate_only)
        return {ADA: QuotaOutcome(self.refuse, "why")}


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    found = FakeAdmin()

    @contextmanager
    def connected(_target: Target) -> Iterator[Any]:
        class Cluster:
            admin = found

        yield Cluster

    for module in (user, quota):
        monkeypatch.setattr(module, "connected", connected)
        monkeypatch.setattr(module, "find_target", lambda *_: Target(bootstrap_servers="h:1", origin="-b"))
    return found


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the environment variable PW, with the signs that people's generators use."""
    monkeypatch.setenv("PW", 'a;b"c\\d,e=%+f')
    return os.environ["PW"]


def test_a_user_is_created_for_each_mechanism(admin: FakeAdmin, secret: str, capsys: Any) -> None:
    words = ("user", "create", "ops,eu=1", "-m", "scram-sha-256", "-m", "SCRAM-SHA-512", "--iterations", "8192")
    assert main([*words, "--password", "env:PW"]) == 0
    assert admin.changes == [SetPassword("ops,eu=1", secret, one, 8192) for one in (SHA_256, SHA_512)]
    assert "ops,eu=1 can log in with SCRAM-SHA-256 and SCRAM-SHA-512" in (said := capsys.readouterr()).err
    assert secret not in said.err + said.out and secret not in repr(admin.changes)


def test_a_user_that_is_there_is_not_created(admin: FakeAdmin, secret: str, capsys: Any) -> None:
    assert main(["user", "create", "ada", "--password", "env:PW"]) == Exit.PRECONDITION
    assert not admin.changes and "passwd" in capsys.readouterr().err


def test_a_password_is_changed_for_what_the_user_has(admin: FakeAdmin, secret: str, tmp_path: Path) -> None:
    (tmp_path / "pw").write_text(f"{secret}\r\nnot this\n")
    assert main(["user", "passwd", "ada", "--password-file", str(tmp_path / "pw")]) == 0
    assert admin.changes == [SetPassword("ada", secret, one) for one in (SHA_256, SHA_512)]
    assert main(["user", "passwd", "nobody", "--password-file", str(tmp_path / "pw")]) == Exit.NOT_FOUND


def test_users_are_listed_and_deleted(admin: FakeAdmin, capsys: Any) -> None:
    assert main(["user", "list", "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["credentials"]
    assert rows[1] == {"user": "ada", "mechanism": "SCRAM-SHA-512", "iterations": 8192} and len(rows) == 3
    assert main(["user", "delete", "bob"]) == Exit.FAILED and not admin.changes  # there is nobody to ask
    assert main(["user", "delete", "bob", "-m", "SCRAM-SHA-256", "-y"]) == Exit.NOT_FOUND
    assert main(["user", "delete", "nobody", "-y"]) == Exit.NOT_FOUND and not admin.changes
    assert main(["user", "delete", "ada", "-y"]) == 0
    assert admin.changes == [DeleteCredential("ada", SHA_256), DeleteCredential("ada", SHA_512)]


def test_what_the_cluster_refuses_is_told(admin: FakeAdmin, secret: str, capsys: Any) -> None:
    admin.refuse = ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert main(["user", "create", "eve", "--password", "env:PW"]) == Exit.FAILED
    assert "user eve, SCRAM-SHA-512: why" in capsys.readouterr().err
    assert main(["user", "create", "eve", "-m", "MD5", "--password", "env:PW"]) == Exit.USAGE


def test_a_password_on_the_command_line_is_warned_of(admin: FakeAdmin, capsys: Any) -> None:
    assert main(["user", "create", "eve", "--password", "canary"]) == 0
    said = capsys.readouterr().err
    assert "every user of this machine can read it" in said and "canary" not in said
    assert admin.changes[0].password == "canary"


def test_where_passwords_come_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("from file\n")
    assert read_password("a", f"file:{tmp_path}/pw", None) == "from file"
    assert read_password("a", "env:X", None, {"X": "from env"}) == "from env"
    monkeypatch.setattr("sys.stdin", io.StringIO("from input\nmore\n"))
    assert read_password("a", None, Path("-")) == "from input"
    for given, file in ((None, None), ("env:X", Path("pw")), ("env:NOT_THERE", None), ("env:EMPTY", None)):
        with pytest.raises(CliError) as caught:
            read_password("a", given, file, {"EMPTY": ""})
        assert caught.value.code is Exit.USAGE


def test_quotas_are_set_for_named_and_default_entities(admin: FakeAdmin, capsys: Any) -> None:
    assert (
        main(["quota", "set", f"{IN}=1048576", "request_percentage=0.5", "--user", "ada", "--default", "client-id"])
        == 0
    )
    assert admin.changes == [
        QuotaChange({"client-id": None, "user": "ada"}, {IN: 1048576.0, "request_percentage": 0.5})
    ]
    assert "the default client-id and user ada" in capsys.readouterr().err
    assert main(["quota", "set", f"{IN}=1", "--client-id", "c", "--dry-run", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"entity": {"client-id": "c"}, "quotas": {IN: 1.0}, "dry_run": True}
    assert admin.asked == [False, True]


@pytest.mark.parametrize(
    "words",
    [
        ("set", f"{IN}=1"),
        ("set", IN, "--user", "a"),
        ("set", f"{IN}=fast", "--user", "a"),
        ("set", f"{IN}=1", "--user", "a", "--default", "user"),
        ("set", f"{IN}=1", "--default", "topic"),
        ("set", f"{IN}=1", "--ip", "10.0.0.1", "--user", "a"),
        ("set", f"{IN}=1", "--ip", "host"),
        ("list", "--default", "topic"),
        ("delete", "--user", "a"),
        ("delete", IN, "--all", "--user", "a"),
    ],
)
def test_mistakes_of_usage(admin: FakeAdmin, words: tuple[str, ...]) -> None:
    assert main(["quota", *words]) == Exit.USAGE
    assert not admin.changes


def test_quotas_are_listed_so_that_the_default_is_no_name(admin: FakeAdmin, capsys: Any) -> None:
    assert main(["quota", "list"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines == [
        ["—", "(default)", "—", IN, "5"],
        ["—", "'(default)'", "—", IN, "6"],
        ["ada", "—", "—", IN, "1024"],
        ["ada", "—", "—", "request_percentage", "12.5"],
    ]
    assert main(["quota", "list", "--default", "client-id", "--strict", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "quotas": [{"entity": {"client-id": None}, "quota": IN, "value": 5.0}]
    }
    assert admin.asked == [({}, False), ({"client-id": None}, True)]


def test_quotas_are_removed(admin: FakeAdmin) -> None:
    assert main(["quota", "delete", "--user", "ada", IN]) == 0
    assert main(["quota", "delete", "--user", "ada", "--all"]) == 0
    assert admin.changes == [
        QuotaChange({"user": "ada"}, {IN: None}),
        QuotaChange({"user": "ada"}, {IN: None, "request_percentage": None}),
    ]
    assert main(["quota", "delete", "--user", "ada", "consumer_byte_rate"]) == Exit.NOT_FOUND
    admin.refuse = ErrorCode.INVALID_REQUEST
    assert main(["quota", "delete", "--user", "ada", "--all"]) != 0


def test_top_shows_who_uses_most_of_its_quota_first(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quota", "top", "--count", "2"]) == 0
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines() if line.strip()]
    assert lines[0][:2] == ["BROKER", "USER"] and admin.asked == [2]
    assert [line[0] for line in lines[1:]] == ["2", "1"]
    assert lines[1][1:5] == ["bob", "''", "request_percentage", "15"] and "150 %" in shown.out and "2.5 s" in shown.out
    assert lines[2][1:3] == ["ada", "(all)"] and "25 %" in shown.out
    assert "broker 3 has not answered: connection refused" in shown.err


def test_top_in_json(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quota", "top", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["used_percent"] for one in found["uses"]] == [150.0, 25.0, 25.0]
    assert found["uses"][1]["client_id"] is None and found["silent"] == {"3": "connection refused"}
