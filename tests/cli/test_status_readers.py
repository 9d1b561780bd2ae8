"""`quorumlog status`: which joint groups hold readers of committed records back, and since when."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.messages.joint import ListedJointGroup, OpenJointChild
from quorumlog.messages.transactions import DescribedTransaction, TransactionTopic
from quorumlog_cli.commands.nodes import status
from quorumlog_cli.commands.nodes.status_readers import HOLDS_READERS_MS, MAX_TOLD, line_of, readers_held_back

NOW = 1_700_000_000_000


def child(name: str, open_ms: int, sequence: int = 8) -> OpenJointChild:
    return OpenJointChild(
        transactional_id=name,
        run="r",
        sequence=sequence,
        started_at_ms=NOW - open_ms,
        timeout_ms=3_600_000,
        location="",
    )


class FakeAdmin:
    """of: the partitions and the state of each transaction."""

    def __init__(self, groups: list[ListedJointGroup], of: dict[str, tuple[list[int], str]]) -> None:
        self.groups, self.of, self.asked_for_groups = groups, of, False

    def list_joint_groups(self) -> list[ListedJointGroup]:
        self.asked_for_groups = True
        return self.groups

    def list_transactions(self, *, states: tuple[str, ...], duration_ms: int) -> list[str]:
        """The children whose state is asked for, and which are open for longer."""
        open_children = [one for group in self.groups for one in group.open if NOW - one.started_at_ms > duration_ms]
        return [
            one.transactional_id
            for one in open_children
            if self.of.get(one.transactional_id, ([], "Ongoing"))[1] in states
        ]

    def describe_transactions(self, ids: list[str]) -> dict[str, DescribedTransaction]:
        return {
            name: DescribedTransaction(
                transactional_id=name,
                state=self.of[name][1],
                topics=(TransactionTopic(name="t", partitions=tuple(self.of[name][0])),) if self.of[name][0] else (),
            )
            for name in ids
        }

    def list_offsets(self, wanted: dict[Any, Any], isolation_level: str) -> dict[Any, Any]:
        assert isolation_level == "read_committed"
        return {at: SimpleNamespace(offset=100 + at[1]) for at in wanted}


def held_back(groups: list[ListedJointGroup], of: dict[str, tuple[list[int], str]]) -> list[dict[str, Any]]:
    return readers_held_back(SimpleNamespace(admin=FakeAdmin(groups, of)), NOW)  # type: ignore[arg-type]


def test_what_is_open_for_long_is_told_by_group_with_the_offsets_that_wait() -> None:
    groups = [
        ListedJointGroup(group_id="a", open=(child("a0", HOLDS_READERS_MS + 1), child("young", HOLDS_READERS_MS))),
        ListedJointGroup(group_id="b", open=(child("b0", 900_000), child("b1", 700_000), child("over", 800_000))),
        ListedJointGroup(group_id="empty", open=(child("none", 900_000),)),
        ListedJointGroup(group_id="at rest"),
    ]
    of = {
        "a0": ([0], "Ongoing"),
        "b0": ([1], "Ongoing"),
        "b1": ([1, 2], "Ongoing"),
        "over": ([3], "CompleteAbort"),
        "none": ([], "Ongoing"),
    }
    first, second = held_back(groups, of)
    assert (first["group"], first["batch"], first["open"], first["open_ms"]) == ("b", 8, 2, 900_000)
    assert first["partitions"] == [
        {"topic": "t", "partition": 1, "stable": 101, "open_ms": 900_000},
        {"topic": "t", "partition": 2, "stable": 102, "open_ms": 700_000},
    ]
    assert (second["group"], second["open"], second["open_ms"]) == ("a", 1, HOLDS_READERS_MS + 1)
    said = line_of(first)
    assert "wait for b, batch 8, with 2 open transactions" in said
    assert "t-1 at 101 for 900000 ms, t-2 at 102 for 700000 ms." in said
    assert said.endswith("quorumlog spark sink abort b does at once")


def test_nothing_is_asked_for_where_nothing_is_old() -> None:
    assert held_back([ListedJointGroup(group_id="a", open=(child("a0", HOLDS_READERS_MS),))], {}) == []


def test_groups_are_asked_for_only_where_a_transaction_is_old() -> None:
    """gRPC alone lists them, and takes longer to load than all else."""
    for open_ms, asked in ((HOLDS_READERS_MS // 2, False), (HOLDS_READERS_MS // 2 + 1, True)):
        admin = FakeAdmin([ListedJointGroup(group_id="a", open=(child("a0", open_ms),))], {})
        assert readers_held_back(SimpleNamespace(admin=admin), NOW) == []  # type: ignore[arg-type]
        assert admin.asked_for_groups is asked


def test_a_line_names_few_partitions() -> None:
    groups = [ListedJointGroup(group_id="a", open=(child("a0", 900_000),))]
    (found,) = held_back(groups, {"a0": ([*range(MAX_TOLD + 3)], "Ongoing")})
    assert len(found["partitions"]) == MAX_TOLD + 3
    assert f"t-{MAX_TOLD - 1} at" in line_of(found) and f"t-{MAX_TOLD} at" not in line_of(found)
    assert " and 3 more. " in line_of(found)


def test_checked_indexes_are_told_where_one_was_built_again(capsys: pytest.CaptureFixture[str]) -> None:
    """Every node checks its indexes each day: that all is well with them is for programs."""
    layout = SimpleNamespace(cluster_id="c", root="r")
    nodes = SimpleNamespace(layout=layout, in_state=lambda state: [1])
    row = dict.fromkeys(("node_id", "state", "ready", "pid", "client", "admin_port", "reason"), 1)
    ends = "pass 2 ended: 3 logs; indexes built again since the start: "
    for checks, told in (([f"/d: {ends}0", "/e: no pass has ended yet"], []), ([f"/d: {ends}10"], ["/d"])):
        found = row | {"recovery": [], "opening": [], "index_checks": checks}
        status._show(nodes, [found], dict.fromkeys(("leader", "epoch", "topics", "partitions"), 1), [])  # type: ignore[arg-type]
        said = capsys.readouterr().out
        assert [one for one in ("/d", "/e") if one in said] == told


@pytest.mark.parametrize(
    ("states", "cluster", "problems", "want"),
    [
        ({1: "running"}, {}, [], []),
        ({1: "running", 2: "stopped", 3: "paused"}, {}, ["x"], ["quorumlog restart 2", "quorumlog resume 3"]),
        ({1: "running"}, {}, ["partitions without a leader: 1", "cut by net cut: 1 | 2"], ["quorumlog net heal"]),
        ({1: "stopped"}, {"error": "no node runs"}, ["x"], []),
    ],
)
def test_what_is_missing_has_a_next_step(
    states: dict[int, str], cluster: dict[str, Any], problems: list[str], want: list[str]
) -> None:
    rows = [{"node_id": node_id, "state": state} for node_id, state in states.items()]
    assert status._next_steps(rows, cluster, problems) == want


def test_what_no_command_mends_is_explained() -> None:
    (step,) = status._next_steps([{"node_id": 1, "state": "running"}], {}, ["node 1: a directory is offline"])
    assert step.startswith("quorumlog explain ")
