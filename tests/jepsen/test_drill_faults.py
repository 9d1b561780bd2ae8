"""The tables of faults name causes and alerts that exist, and together they put nearly every cause there is.

What a fault expects is known once it has been put, at a cluster. So the names are read from the text of the tables.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from jepsen.drill import faults, more_faults
from jepsen.drill.more_faults import EIGHT, MORE, flip_bit
from jepsen.drill.watchers import causes_of_alerts
from quorumlog.explaining.causes import BY_NAME

TREES = [ast.parse(inspect.getsource(one)) for one in (faults, more_faults)]
SORTS = {one.partition(".")[0] for one in BY_NAME}

NOT_PUT = {
    "broker.fenced": "a cluster of ours tells why; tests/library/test_causes.py has the facts of an Apache Kafka",
    "broker.leaving": "it lasts for less than a look: broker.shut-down follows",
    "broker.silent": "it lasts until the session ends: broker.lost follows, and a look may fall between",
    "broker.starting": "a node that was struck passes through it when it is lifted; a notice",
    "group.coordinator-loading": "a log of this size is read within less than a look",
    "group.lag": "it is group.lag-grows once nobody produces any more",
    "group.member-does-not-rejoin": "a member that polls late has five minutes; tests/library has the facts",
    "group.no-coordinator": "it takes all replicas of __consumer_offsets: leader.all-replicas-dead is its cause",
    "group.rebalancing": "it lasts for less than a look: group.rebalances-often is told",
    "leader.eligible-replicas-dead": "it takes two dead nodes of three, so the quorum is lost, too",
    "leader.unclean-election": "it is told for an hour, in the shadow of which nothing else could be judged",
    "quorum.no-majority": "the leader resigns within a second or two: quorum.no-leader is told",
    "quorum.voter-lagging": "a voter that fetches catches up at once at this rate of changes",
    "quorum.voter-silent": "told besides of each node that is away",
    "reassignment.running": "a reassignment that can end has ended before a look; the healthy minutes have some",
    "replica.broker-away": "told besides of each node that is away",
    "replica.directory-offline": "told besides of each directory that fails",
    "replica.slow-disk": "told besides of the slow disk",
    "replica.throttled": "it needs more to copy than a throttle lets through in half a minute; tests/library has it",
    "transaction.late": "it waits for five minutes at least",
}  # fmt: skip


def _texts(node: ast.AST) -> set[str]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def _calls(name: str) -> list[ast.Call]:
    every = [one for tree in TREES for one in ast.walk(tree) if isinstance(one, ast.Call)]
    return [one for one in every if isinstance(one.func, ast.Name) and one.func.id == name]


def _put() -> set[str]:
    """Causes that are the name of a fault, not what follows from it."""
    expected = {text for call in [*_calls("Expected"), *_calls("replace")] for one in call.keywords
                if one.arg == "causes" for text in _texts(one.value)}  # fmt: skip
    return expected | {text for call in _calls("certificate") for text in _texts(call.args[0])}


def test_names_of_causes_and_alerts_exist() -> None:
    texts = {text for tree in TREES for text in _texts(tree) if " " not in text}
    causes = {one for one in texts if one.partition(".")[0] in SORTS and one.count(".") == 1}
    alerts = {one for one in texts if one.startswith("Quorumlog")}
    assert causes <= set(BY_NAME) and alerts <= set(causes_of_alerts())
    assert len(causes) > 40 and len(alerts) > 15


def test_each_cause_is_put_by_a_fault_or_has_a_reason() -> None:
    """quorum.no-majority is named beside another one by a fault that may show either."""
    put = _put() - {"quorum.no-majority"}
    assert put & set(NOT_PUT) == set()
    assert put | set(NOT_PUT) == set(BY_NAME)
    assert len(put) >= 28


def test_an_alert_of_a_fault_is_for_a_cause_of_it_or_of_what_follows() -> None:
    """Else Prometheus would name something else than `check` does."""
    for call in _calls("Expected"):
        said = {one.arg: _texts(one.value) for one in call.keywords}
        for alert in said.get("alerts", ()):
            lost = {"broker.lost"} if alert == "QuorumlogBrokerLost" else set()  # the tables' AWAY has it
            allowed = said["causes"] | said.get("consequences", set()) | lost
            assert allowed & set(causes_of_alerts()[alert]), (alert, said["causes"])


def test_a_fault_without_an_alert_says_why() -> None:
    for call in _calls("Expected"):
        said = {one.arg for one in call.keywords}
        assert ("alerts" in said) != ("no_alert" in said) or None in said, ast.unparse(call)


def test_there_are_twenty_more() -> None:
    assert len(MORE) >= 20 and len({one.name for one in (*EIGHT, *MORE)}) == len(EIGHT) + len(MORE)
    assert all(one.says and one.name == one.name.lower() for one in MORE)


@pytest.mark.parametrize("position", [0, 3, 7])
def test_a_bit_that_is_flipped_twice_is_as_before(tmp_path: Path, position: int) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(bytes(range(8)))
    flip_bit(path, position)
    assert [at for at, byte in enumerate(path.read_bytes()) if byte != at] == [position]
    flip_bit(path, position)
    assert path.read_bytes() == bytes(range(8))
