"""`quorumlog acl` over a cluster that only answers: what it asks for, shows and refuses, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quorumlog.client.blocking
import quorumlog_cli.connecting.connect
from quorumlog.errors import ApiError
from quorumlog.messages.brokers import AclCreation, AclResult, DescribeAclsRequest
from quorumlog.security.acl.content import AclContent, checked, matches
from quorumlog_cli.commands.access import acl as command
from quorumlog_cli.commands.access.acl_file import read_acls, write_acls
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import CliError

EVERY = DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)
READS = AclContent(2, "orders", 3, "User:alice", "*", 3, 3)


class Admin:
    """Two brokers; the second one is `lag` questions behind."""

    def __init__(self) -> None:
        self.acls: set[AclContent] = set()
        self.deleted: list[DescribeAclsRequest] = []
        self.lag = 0
        self.settings = {"super.users": "User:root;User:admin", "allow.everyone.if.no.acl.found": "false"}

    def describe_cluster(self) -> Any:
        return SimpleNamespace(brokers=[SimpleNamespace(node_id=1), SimpleNamespace(node_id=2)])

    def describe_configs(self, name: str, *, resource_type: int) -> Any:
        assert (name, resource_type) == ("1", 4)
        return SimpleNamespace(configs=[SimpleNamespace(name=key, value=value) for key, value in self.settings.items()])

    def describe_acls(self, wanted: DescribeAclsRequest = EVERY, *, node_id: int | None = None) -> list[AclContent]:
        if node_id == 2 and self.lag:
            self.lag -= 1
            return []
        return sorted(acl for acl in self.acls if matches(wanted, acl))

    def create_acls(self, acls: Iterable[AclContent]) -> list[AclResult]:
        results = []
        for acl in acls:
            kind, name, pattern, who, host, operation, permission = acl
            try:
                made = checked(
                    AclCreation(
                        resource_type=kind,
                        resource_name=name,
                        resource_pattern_type=pattern,
                        principal=who,
                        host=host,
                        operation=operation,
                        permission_type=permission,
                    )
                )
            except ApiError as error:
                results.append(AclResult(error_code=error.code, error_message=error.message))
            else:
                self.acls.add(made)
                results.append(AclResult())
        return results

    def delete_acls(self, filters: Sequence[DescribeAclsRequest]) -> None:
        self.deleted += filters
        self.acls -= {acl for acl in self.acls if any(matches(one, acl) for one in filters)}


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Admin]:
    found = Admin()

    class Cluster:
        admin = found

        def __init__(self, *_: Any, **__: Any) -> None: ...

        def __enter__(self) -> Cluster:
            return self

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(quorumlog.client.blocking, "Cluster", Cluster)
    monkeypatch.setattr(quorumlog_cli.connecting.connect, "reach", lambda *_: None)
    monkeypatch.setenv("QUORUMLOG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return found


def run(*words: str) -> int:
    return main(["acl", *words, "-b", "localhost:1"])


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert run(*words, "-o", "json") == code
    return json.loads(capsys.readouterr().out)


def spoken(acls: Iterable[AclContent]) -> list[str]:
    """TYPE:NAME PATTERN PRINCIPAL OPERATION PERMISSION, by numbers."""
    return sorted(f"{a.resource_type}:{a.resource_name} {a.pattern_type} {a.principal} {a.operation}" for a in acls)


def test_a_rule_is_made_shown_and_removed(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("create", "topic:orders", "--allow", "User:alice", "--operation", "read") == 0
    assert admin.acls == {READS}
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "topic:orders", "literal", "User:alice", "allow", "read", "*",
    ]  # fmt: skip
    document = {
        "resource": "topic:orders", "pattern": "literal", "principal": "User:alice", "permission": "allow",
        "operation": "read", "host": "*",
    }  # fmt: skip
    assert said(capsys, "list") == [document]
    assert said(capsys, "delete", "topic:orders", "--dry-run") == [document] and admin.acls
    assert run("delete", "topic:orders") == 1, "there is no terminal to answer"
    assert admin.acls == {READS}
    assert said(capsys, "delete", "topic:orders", "--yes") == [document]
    assert not admin.acls and len(admin.deleted) == 1
    assert run("delete", "topic:orders", "--yes") == 7


def test_what_a_producer_and_a_consumer_need(admin: Admin) -> None:
    """As kafka-acls gives by --producer and --consumer."""
    run("create", "topic:t", "transactional-id:x", "--allow", "User:p", "--producer", "--idempotent")
    on_topic = ["2:t 3 User:p 4", "2:t 3 User:p 5", "2:t 3 User:p 8"]
    assert spoken(admin.acls) == [*on_topic, "4:kafka-cluster 3 User:p 12", "5:x 3 User:p 4", "5:x 3 User:p 8"]
    admin.acls.clear()
    run("create", "topic:t", "group:g", "--allow", "User:c", "--consumer", "--prefixed")
    assert spoken(admin.acls) == ["2:t 4 User:c 3", "2:t 4 User:c 8", "3:g 4 User:c 3"]


def test_each_combination_is_a_rule(admin: Admin) -> None:
    words = ("topic:a", "group:b", "-O", "read", "-O", "AlterConfigs", "--host", "h", "--host", "i")
    assert run("create", *words, "--allow", "User:x", "--deny", "User:y") == 0
    assert len(admin.acls) == 16
    assert {one.permission_type for one in admin.acls if one.principal == "User:y"} == {2}
    assert {one.operation for one in admin.acls} == {3, 11}


USAGE = [
    ("nothing", ("create",), "this is no rule yet"),
    ("no operation", ("create", "topic:a", "--allow", "User:x"), "this is no rule yet"),
    ("resource", ("create", "orders", "--allow", "User:x", "-O", "read"), "'orders' is no resource; write topic:NAME"),
    ("a named cluster", ("create", "cluster:mine", "--allow", "User:x", "-O", "read"), "is no resource"),
    ("principal", ("create", "topic:a", "--allow", "alice", "-O", "read"), "'alice' is no principal"),
    (
        "operation",
        ("create", "topic:a", "--allow", "User:x", "-O", "fly"),
        "'fly' is no operation; those are all, read",
    ),
    ("a consumer of nothing", ("create", "--allow", "User:x", "--consumer"), "need resources and --allow"),
    ("a consumer of a cluster", ("create", "cluster", "--allow", "User:x", "--consumer"), "is nothing that these"),
    ("delete everything", ("delete",), "or give --all"),
    ("delete everything and one", ("delete", "--all", "topic:a"), "or give --all"),
    ("test of all", ("test", "User:a", "all", "topic:x"), "name one operation"),
]


@pytest.mark.parametrize(("words", "why"), [case[1:] for case in USAGE], ids=[case[0] for case in USAGE])
def test_what_is_no_rule_is_refused_before_anybody_is_asked(
    admin: Admin, words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    assert why in " ".join(capsys.readouterr().err.split())
    assert not admin.acls and not admin.deleted


def test_a_list_by_name_principal_and_match(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    run("create", "topic:orders", "topic:*", "--allow", "User:a", "-O", "read")
    run("create", "topic:ord", "--prefixed", "--allow", "User:b", "-O", "read")
    names = lambda *words: [one["resource"] for one in said(capsys, "list", *words)]  # noqa: E731
    assert names("topic:orders") == ["topic:orders"]
    assert names("topic:orders", "--match") == ["topic:*", "topic:ord", "topic:orders"]
    assert names("--principal", "User:b") == ["topic:ord"]
    assert names("group:orders") == []


def test_what_is_named_in_a_removal_narrows_it(admin: Admin) -> None:
    run("create", "topic:a", "topic:b", "-O", "read", "-O", "write", "--allow", "User:x", "--deny", "User:y")
    run("create", "topic:a", "--prefixed", "-O", "read", "--allow", "User:x")
    assert run("delete", "topic:a", "--allow", "User:x", "-O", "read", "--yes") == 0
    assert len(admin.acls) == 8, "one literal rule is gone, and not the prefixed one"
    assert run("delete", "--deny", "User:y", "--yes") == 0
    assert {one.principal for one in admin.acls} == {"User:x"}
    assert run("delete", "topic:a", "--prefixed", "--yes") == 0
    assert run("delete", "--all", "--yes") == 0
    assert not admin.acls


def test_a_rule_that_the_cluster_refuses_is_told(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.create_acls = lambda acls: [AclResult(error_code=42, error_message="not today") for _ in acls]  # type: ignore[method-assign]
    assert run("create", "topic:a", "--allow", "User:x", "-O", "read") == 9
    assert "not today" in capsys.readouterr().err


def test_wait_returns_once_every_broker_has_the_rule(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: len(slept) * 10.0, sleep=slept.append))
    admin.lag = 2
    assert run("create", "topic:a", "--allow", "User:x", "-O", "read", "--wait") == 0
    assert len(slept) == 2
    admin.lag = 99
    assert run("create", "topic:b", "--allow", "User:x", "-O", "read", "--wait") == 10


def test_the_rule_that_decides_is_named(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    run("create", "topic:ord", "--prefixed", "--allow", "User:alice", "-O", "write")
    run("create", "topic:*", "--deny", "User:*", "-O", "all", "--host", "10.0.0.7")
    capsys.readouterr()
    assert run("test", "User:alice", "describe", "topic:orders") == 0
    assert capsys.readouterr().out == (
        "allowed: User:alice describe topic:orders\nbecause User:alice may WRITE topic ord* from anywhere\n"
    )
    assert run("test", "User:alice", "read", "topic:orders") == 8
    assert "denied: User:alice read topic:orders\nbecause no rule allows it" in capsys.readouterr().out
    assert run("test", "User:alice", "write", "topic:orders", "--host", "10.0.0.7") == 8
    assert "because User:* must not ALL topic * from 10.0.0.7" in capsys.readouterr().out
    assert run("test", "User:admin", "alter", "cluster", "--host", "10.0.0.7") == 0
    assert "because a super user may do everything" in capsys.readouterr().out
    assert run("test", "User:alice", "read", "group:g") == 8
    admin.settings["allow.everyone.if.no.acl.found"] = "true"
    answer = said(capsys, "test", "User:alice", "read", "group:g")
    assert answer["allowed"] and answer["rule"] is None and "allow.everyone" in answer["why"]
    answer = said(capsys, "test", "User:alice", "write", "topic:orders")
    assert answer["rule"]["resource"] == "topic:ord" and answer["rule"]["pattern"] == "prefixed"


def test_a_file_is_put_in_force_once_its_plan_is_shown(
    admin: Admin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("create", "topic:a", "topic:b", "--allow", "User:x", "-O", "read")
    before = set(admin.acls)
    assert run("export", "acls.json") == 0
    kept = (tmp_path / "acls.json").read_text()
    run("delete", "topic:a", "--yes")
    run("create", "topic:c", "--allow", "User:x", "-O", "read")
    plan = said(capsys, "apply", "acls.json", "--prune", "--dry-run")
    assert [one["resource"] for one in plan["new"]] == ["topic:a"]
    assert [one["resource"] for one in plan["removed"]] == ["topic:c"]
    assert run("apply", "acls.json", "--prune") == 1, "there is no terminal to answer"
    assert len(admin.acls) == 2
    capsys.readouterr()
    assert run("apply", "acls.json", "--yes") == 0
    assert "+  topic:a" in capsys.readouterr().out
    assert len(admin.acls) == 3, "without --prune nothing is removed"
    assert run("apply", "acls.json", "--prune", "--yes") == 0
    assert admin.acls == before
    assert run("export") == 0
    assert capsys.readouterr().out.endswith(kept)
    assert run("apply", "acls.json") == 0
    assert "has these rules already" in capsys.readouterr().err


BAD = [
    ("no JSON", "{", "the file is not JSON"),
    ("nested without end", "[" * 100_000, "the file is not JSON"),
    ("a list", "[]", "is no document of the form"),
    ("version", '{"version":2,"acls":[]}', "the file has version 2; version 1 is read"),
    ("an entry", '{"acls":[1]}', "entry 1 is no object"),
    ("a key", '{"acls":[{"resource":"topic:a","hosts":"h"}]}', "entry 1: 'hosts' is none of resource"),
    ("no text", '{"acls":[{"resource":1}]}', "entry 1: resource is no text"),
    ("empty host", '{"acls":[{"host":""}]}', "entry 1: host is no text"),
    ("no resource", '{"acls":[{"principal":"User:a","operation":"read"}]}', "entry 1 has no resource"),
    ("no operation", '{"acls":[{"resource":"topic:a","principal":"User:a"}]}', "entry 1 has no operation"),
    ("pattern", '{"acls":[{"resource":"topic:a","principal":"User:a","operation":"read","pattern":"any"}]}', "'any'"),
    ("permission", '{"acls":[{"resource":"topic:a","principal":"User:a","operation":"read","permission":"x"}]}', "'x'"),
    ("resource", '{"acls":[{"resource":"orders","principal":"User:a","operation":"read"}]}', "'orders' is no resource"),
]


@pytest.mark.parametrize(("text", "why"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_file_that_was_not_understood_changes_nothing(
    admin: Admin, tmp_path: Path, text: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.json").write_text(text)
    assert run("apply", "bad.json", "--yes", "--prune") == 4
    assert why in " ".join(capsys.readouterr().err.split())
    assert not admin.acls
    assert run("apply", "gone.json", "--yes") == 7


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10)
contents = st.builds(
    AclContent,
    st.sampled_from([2, 3, 5, 6, 7]),
    texts,
    st.sampled_from([3, 4]),
    texts.map("User:{}".format),
    texts,
    st.integers(2, 15),
    st.sampled_from([2, 3]),
)


@given(st.lists(contents, max_size=5))
def test_a_file_reads_back_whatever_signs_its_names_have(acls: list[AclContent]) -> None:
    assert read_acls(write_acls(acls)) == sorted(set(acls))


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_acls(text)
    except CliError:
        pass
