"""The report of what would be refused: everything is allowed, and each refusal is told once."""

from __future__ import annotations

import pytest

from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog.security.acl import report_only
from quorumlog.security.acl.authorizer import RuleAuthorizer
from quorumlog.security.acl.index import DENY, RuleIndex
from quorumlog.security.acl.report_only import ReportOnly
from quorumlog.security.audit import MAX_NAME_CHARACTERS
from quorumlog.security.authorizer import EVERYTHING, Operation, ResourceType
from quorumlog.security.principal import Principal
from quorumlog.security.required.asker import Asker
from quorumlog.security.required.topics import create_topics
from tests.security.acl.test_index import rule
from tests.security.required.scripted_rules import Noted, SomeTopics

ALICE = Principal("User", "alice")
READ, TOPIC = Operation.READ, ResourceType.TOPIC


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return lines


def test_each_refusal_is_told_once_until_the_rules_change(caplog: pytest.LogCaptureFixture) -> None:
    index = RuleIndex()
    reports = ReportOnly(RuleAuthorizer(index))
    index.add(rule("a"))
    for _ in range(2):
        assert reports.authorize(ALICE, "h", READ, TOPIC, "a")
        assert reports.authorize(ALICE, "h", READ, TOPIC, "b")
        assert reports.authorize_any(ALICE, "h", Operation.WRITE, TOPIC)
        assert reports.operations(ALICE, "h", TOPIC, "b") == EVERYTHING
    assert told(caplog) == [
        "would be refused: User:alice from h: READ topic b: no rule is about this name, and "
        "allow.everyone.if.no.acl.found decides",
        "would be refused: User:alice from h: WRITE any topic: no rule allows it",
    ]
    index.add(rule("*", permission=DENY, principal="User:*"))
    assert reports.authorize(ALICE, "h", READ, TOPIC, "b")
    assert told(caplog) == [
        "would be refused: User:alice from h: READ topic b: User:* must not READ topic * from anywhere"
    ]


def test_of_two_rights_that_do_the_narrower_one_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """A topic is created by CREATE on the cluster or on the topic. Who asks for the wide right first would be told to
    grant it, and told so for ever where the narrow one is granted."""
    index = RuleIndex()
    index.add(rule("orders", operation=Operation.CREATE))
    topics = tuple(CreatableTopic(name=name) for name in ("orders", "payments"))
    request = CreateTopicsRequest(topics=topics, timeout_ms=1_000)
    ask = Asker(ALICE, "h", ReportOnly(RuleAuthorizer(index)), SomeTopics({}), Noted(), "CLIENT", CreateTopicsRequest)
    assert create_topics(ask, request).request == request
    (line,) = told(caplog)
    assert line.startswith("would be refused: User:alice from h: CREATE topic payments: ")


def test_a_flood_of_refusals_is_bounded(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_only, "MAX_TOLD", 3)
    reports = ReportOnly(RuleAuthorizer(RuleIndex()))
    for number in range(10):
        assert reports.authorize(ALICE, "h", READ, TOPIC, f"t{number}")
    assert len(told(caplog)) == 4, "three refusals, and that there are more"


def test_long_names_are_told_and_kept_in_part(caplog: pytest.LogCaptureFixture) -> None:
    reports = ReportOnly(RuleAuthorizer(RuleIndex()))
    for end in "ab":
        assert reports.authorize(ALICE, "h", READ, TOPIC, "t" * 100_000 + end)
    (line,) = told(caplog)
    assert "ttt..." in line and len(line) < 500
    assert sum(len(refusal[-1]) for refusal in reports._told) == MAX_NAME_CHARACTERS
