"""The time line of the console: what several nodes tell is one event."""

from __future__ import annotations

from quorumlog.messages.events import DescribeEventsResponse, Event
from quorumlog_console.pages.happenings import of_nodes


def told(node_id: int, at_ms: int, kind: str, text: str, offset: int = -1) -> Event:
    record = "BrokerRegistrationChangeRecord" if offset >= 0 else ""
    return Event(
        node_id=node_id, number=1, at_ms=at_ms, kind=kind, subject="quorum", text=text, offset=offset, record=record
    )


def lines(*events: Event) -> list[tuple[str, str]]:
    found = of_nodes({one.node_id: DescribeEventsResponse(events=(one,)) for one in events})
    return [(one.node, one.text) for one in found]


def test_an_election_is_one_line_however_late_a_node_hears_of_it() -> None:
    text = "leader 1 in epoch 5"
    assert lines(told(1, 4_999, "quorum.leader", text), told(2, 5_001, "quorum.leader", text)) == [("1, 2", text)]
    other = told(2, 5_001, "quorum.leader", "leader 2 in epoch 6")
    assert len(lines(told(1, 4_999, "quorum.leader", text), other)) == 2


def test_a_record_is_one_line_and_what_a_node_meets_itself_is_its_own() -> None:
    assert lines(told(1, 0, "broker.fenced", "x", 7), told(2, 90_000, "broker.fenced", "x", 7)) == [("1, 2", "x")]
    assert len(lines(told(1, 0, "loop.stall", "x"), told(2, 90_000, "loop.stall", "x"))) == 2
