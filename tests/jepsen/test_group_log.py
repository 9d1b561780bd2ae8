"""Records of groups that are right, and those that break each rule (jepsen.checkers.group_log)."""

from __future__ import annotations

import pytest

from jepsen.checkers.group_log import Generation, Step, check_log
from jepsen.sim.invariants.coordinators.group_logs import steps_of
from quorumlog.records import lay_out_rows
from quorumlog.records.coordinator import GROUP_TYPES, encode_key
from quorumlog.records.coordinator.consumer_groups import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from quorumlog.records.coordinator.decode import number_of
from quorumlog.records.coordinator.offsets import GroupMetadataKey, GroupMetadataValue, MemberMetadata

ONE = Generation("a", "range", frozenset("ab"))


def classic(number: int | None, generation: Generation | None = ONE) -> Step:
    return Step("g", True, number, None if number is None else generation)


def modern(epoch: int | None) -> Step:
    return Step("g", False, epoch)


GOOD = {
    "generations": [[classic(1)], [classic(2)], [classic(3, None)], [classic(4)]],
    "a static member that came back": [[classic(1)], [classic(1)]],
    "to the consumer protocol and back": [
        [classic(3)],
        [classic(None), modern(3)],
        [modern(4)],
        [modern(None), classic(4)],
    ],
    "back, and then a generation": [[modern(4)], [modern(None), classic(4, ONE._replace(leader=None))], [classic(5)]],
    "an empty one becomes a consumer group": [[classic(7, None)], [classic(None), modern(1)]],
    "forgotten, and another one": [[classic(7)], [classic(None)], [classic(1)]],
    "of another group": [[classic(7)], [Step("h", True, 1, ONE)]],
}
BAD = {
    "group-number-falls": [
        [[classic(2)], [classic(1)]],
        [[modern(2)], [modern(1)]],
        [[classic(5)], [classic(None), modern(4)]],
        [[modern(5)], [modern(None), classic(4)]],
    ],
    "group-generation-twice": [
        [[classic(1)], [classic(1, ONE._replace(leader="b"))]],
        [[classic(1)], [classic(1, ONE._replace(protocol="roundrobin"))]],
        [[classic(1)], [classic(1, ONE._replace(members=frozenset("abc")))]],
    ],
}


@pytest.mark.parametrize("name", GOOD)
def test_right(name: str) -> None:
    assert list(check_log(GOOD[name])) == []


@pytest.mark.parametrize(("rule", "batches"), [(rule, one) for rule, cases in BAD.items() for one in cases])
def test_wrong(rule: str, batches: list[list[Step]]) -> None:
    assert [finding.name for finding in check_log(batches)] == [rule]


def test_records_are_read() -> None:
    members = (
        MemberMetadata("a-1", "c", "/h", 1, b"", b"", group_instance_id="a"),
        MemberMetadata("b", "c", "/h", 1, b"", b""),
    )
    written = [
        (GroupMetadataKey("g"), GroupMetadataValue("consumer", 1, "range", "a-1", members)),
        (GroupMetadataKey("g"), GroupMetadataValue("consumer", 2, None, None, ())),
        (GroupMetadataKey("g"), None),
        (ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(1, 0)),
    ]
    data = b""
    for key, value in written:
        layout = GROUP_TYPES[number_of(key)].value
        row = (
            0,
            encode_key(key),
            None if value is None else layout.encode(value, 3 if key is not written[3][0] else 0),
            (),
        )
        data += bytes(lay_out_rows([row]).seal(-1, -1, -1))
    assert list(steps_of(data)) == [[classic(1)], [classic(2, None)], [classic(None)], [modern(1)]]
