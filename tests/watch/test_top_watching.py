"""Looks one after the other: what a cluster that does not answer leaves on the screen, and where events come from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from watch_samples import BEGAN_MS, sample, topic

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import RequestFailed, Unavailable
from quorumlog.errors import ErrorCode
from quorumlog.messages.events import Event
from quorumlog.rpc.transport import NotServed
from quorumlog.watch.sample import Part, Sample
from quorumlog_cli.top import watching as module
from quorumlog_cli.top.views import HOUR_MS, Watched
from quorumlog_cli.top.watching import EVENTS_A_LOOK, OVERLAP_MS, Watching


class Admin:
    """answers: to describe_events, in their order; the last one again and again."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    async def describe_events(self, **asked: Any) -> Mapping[int, Any]:
        self.asked.append(asked)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return {1: SimpleNamespace(events=answer)}


def made(monkeypatch: pytest.MonkeyPatch, admin: Admin, *samples: Sample) -> Watching:
    """Whose looks bring these samples."""
    looks: Iterator[Sample] = iter(samples)

    async def look(_self: object) -> Sample:
        return next(looks)

    monkeypatch.setattr(module, "Reader", lambda *_, **_more: SimpleNamespace(look=lambda: look(None)))
    return Watching(cast(AsyncAdmin, admin), cast(Any, None), Watched())


def event(number: int) -> Event:
    return Event(
        at_ms=BEGAN_MS - 1_000 + number, node_id=1, number=number, kind="loop.stall", subject="node/1", text="x"
    )


@pytest.mark.parametrize("part", [Part.BROKERS, Part.TOPICS])
def test_what_is_known_stays_while_nobody_answers(monkeypatch: pytest.MonkeyPatch, part: Part) -> None:
    """A look that half of a cluster answered shows no cluster without topics."""
    whole, lost = sample(0, topic("t", 5)), sample(9_000, missing={part: "no broker answered"})
    watching = made(monkeypatch, Admin([]), whole, lost, sample(20_000, topic("t", 9)))
    for count, trouble in ((1, ""), (1, "no broker answered"), (2, "")):
        asyncio.run(watching.look())
        assert (len(watching.watched.past), watching.watched.trouble) == (count, trouble)
        assert watching.watched.newest is not None and set(watching.watched.newest.topics) == {"t"}


def test_events_are_asked_for_since_the_last_answer_with_an_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    silence = Unavailable("no broker answered")
    admin = Admin([event(1)], silence, [event(1), event(2)], [])
    watching = made(monkeypatch, admin, *(sample(at_ms) for at_ms in (0, 1_000, 2_000, 3_000)))
    for _ in range(4):
        asyncio.run(watching.look())
    since = [asked["since_ms"] for asked in admin.asked]
    assert since == [BEGAN_MS - HOUR_MS, *[BEGAN_MS - OVERLAP_MS] * 2, BEGAN_MS + 2_000 - OVERLAP_MS]
    assert {asked["limit"] for asked in admin.asked} == {EVENTS_A_LOOK}
    assert [one.at_ms - BEGAN_MS for one in watching.watched.events.newest_first()] == [-998, -999]


@pytest.mark.parametrize("refusal", [NotServed("no gRPC"), RequestFailed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no")])
def test_a_cluster_without_events_shows_what_changed_between_looks(
    monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    admin = Admin(refusal)
    watching = made(monkeypatch, admin, sample(0, topic("t", 5)), sample(1_000), sample(2_000, epoch=2))
    for _ in range(3):
        asyncio.run(watching.look())
    assert len(admin.asked) == 1  # it is not asked for ever
    found = watching.watched.events.newest_first()
    assert [(one.kind, one.subject) for one in found] == [("election", "quorum"), ("topic", "topic/t")]
    assert len(watching.watched.events.elections()) == 1
