"""`quorumlog group` beside Kafka's kafka-consumer-groups, on groups of another client: the same tables."""

from __future__ import annotations

import json
from typing import Any

import cells_java
import pytest
from cells_confluent import member, produce, read
from client_matrix import LISTED_SKIPS, Place

from bench.peers import kafka_tools as kafka
from quorumlog.testing.cluster import LocalCluster
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit


class Command:
    """`quorumlog group ...` against one cluster."""

    def __init__(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        self._place, self._capsys = place, capsys

    def text(self, *arguments: str, code: Exit = Exit.DONE) -> str:
        self._capsys.readouterr()
        found = main(["group", *arguments, "-b", self._place.servers])
        said = self._capsys.readouterr()
        assert found == code, said.err
        return said.out + said.err * (code is not Exit.DONE and not said.out)

    def document(self, *arguments: str, code: Exit = Exit.DONE) -> Any:
        return json.loads(self.text(*arguments, "-o", "json", code=code))

    def rows(self, *arguments: str) -> list[list[str]]:
        return [line.split() for line in self.text(*arguments).splitlines()]


@pytest.fixture
def place(cluster: LocalCluster, request: pytest.FixtureRequest) -> Any:
    with cluster.topic("command") as topic:
        yield Place(cluster.bootstrap_servers, topic.name)


@pytest.fixture
def command(place: Place, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(place, capsys)


def consumed(place: Place, records: int) -> None:
    """The topic has twice as many records as its group has read."""
    produce(place, [b"%d" % number for number in range(records)])
    with member(place) as made:
        read(made, records)
    produce(place, [b"%d" % number for number in range(records)])


def test_a_group_with_a_member(place: Place, command: Command) -> None:
    produce(place, [b"0", b"1"])
    group = place.topic
    with member(place) as made:
        read(made, 2)
        made.commit(asynchronous=False)
        (row,) = command.document("describe", group)
        assert (row["topic"], row["partition"], row["current_offset"], row["log_end_offset"], row["lag"]) == (
            place.topic, 0, 2, 2, 0,
        )  # fmt: skip
        assert row["host"] == "/127.0.0.1" and row["client_id"] == "rdkafka"
        (one,) = command.document("describe", group, "--members")
        assert one["consumer_id"] == row["consumer_id"] and one["assignment"] == {place.topic: [0]}
        (state,) = command.document("describe", group, "--state")
        assert (state["state"], state["assignment_strategy"], state["members"]) == ("Stable", "range", 1)
        assert state["address"] in place.servers.split(",")
        assert group in [one["group"] for one in command.document("list", "--state", "stable")]
        assert group not in [one["group"] for one in command.document("list", "--state", "empty")]
        assert group in command.text("list", "--state", "empty,Stable", "--type", "classic")
        assert "--state odd: it is none of Assigning" in command.text("list", "--state", "odd", code=Exit.USAGE)
        reset = ("reset-offsets", "--group", group, "--all-topics", "--to-earliest", "--execute")
        command.text(*reset, code=Exit.PRECONDITION)
        both = ("reset-offsets", "--group", group, "--group", "other", "--topic", place.topic, "--to-earliest")
        shown = command.text(*both, "--export", code=Exit.PARTIAL)
        assert shown == f"other,{place.topic},0,0\n", "the one with members is left as it is"
        assert "members" in command.text("delete", group, code=Exit.FAILED)
        assert "reads this topic" in command.text("delete-offsets", group, "-t", place.topic, code=Exit.FAILED)
    assert command.rows("describe", group)[1][6:] == ["-", "-", "-"]


def test_a_static_member_is_shown_with_its_instance(place: Place, command: Command) -> None:
    produce(place, [b"0"])
    with member(place, **{"group.instance.id": "first"}) as made:
        read(made, 1)
        heading, row = command.rows("describe", place.topic, "--members", "--verbose")
    assert dict(zip(heading, row, strict=True)) | {"CONSUMER-ID": "", "HOST": "", "CLIENT-ID": ""} == {
        "GROUP": place.topic, "CONSUMER-ID": "", "GROUP-INSTANCE-ID": "first", "HOST": "", "CLIENT-ID": "",
        "#PARTITIONS": "1", "CURRENT-EPOCH": "-", "CURRENT-ASSIGNMENT": f"{place.topic}:0", "TARGET-EPOCH": "-",
        "TARGET-ASSIGNMENT": "-",
    }  # fmt: skip


def test_lag_and_its_threshold(place: Place, command: Command) -> None:
    consumed(place, 3)
    found = command.document("lag", place.topic)
    (topic,) = found["topics"]
    assert (found["counted_in"], found["total"], found["max"]) == ("records", 3, 3)
    assert (topic["topic"], topic["total"], topic["max"], topic["distance"]) == (place.topic, 3, 3, 3)
    assert 0 <= found["behind_ms"] < 60_000 and topic["is_read"], "a group without members may be read by assignment"
    command.text("lag", place.topic, "--threshold", "3")
    command.text("lag", place.topic, "--threshold", "2", code=Exit.UNHEALTHY)
    assert command.document("lag", place.topic, "--read-committed")["total"] == 3
    command.text("lag", "no-such-group", code=Exit.NOT_FOUND)
    command.text("describe", "no-such-group", code=Exit.NOT_FOUND)
    assert place.topic in command.text("describe", "no-such-group", place.topic, code=Exit.NOT_FOUND), "it is shown"
    forget = ("delete-offsets", "no-such-group", "-t", place.topic)
    assert "group 'no-such-group' does not exist" in command.text(*forget, code=Exit.NOT_FOUND)
    shift = ("reset-offsets", "--group", "no-such-group", "--topic", place.topic, "--shift-by", "1")
    assert f"no committed offset of {place.topic}-0" in command.text(*shift, code=Exit.PRECONDITION)
    everything = ("reset-offsets", "--group", "no-such-group", "--all-topics", "--to-latest")
    assert "has committed nothing" in command.text(*everything, code=Exit.NOT_FOUND)


def test_offsets_are_reset_exported_and_read_again(place: Place, command: Command, tmp_path: Any) -> None:
    consumed(place, 4)
    group, topic = place.topic, place.topic
    reset = ("reset-offsets", "--group", group, "--topic", topic)

    def now() -> int:
        return int(command.document("describe", group)[0]["current_offset"])

    assert command.rows(*reset, "--to-earliest") == [
        ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"], [group, topic, "0", "0"],
    ]  # fmt: skip
    assert now() == 4, "a dry run changes nothing"
    for goal, wanted in [
        (("--to-earliest",), 0),
        (("--to-latest",), 8),
        (("--to-offset", "5"), 5),
        (("--shift-by", "-2"), 3),
        (("--shift-by", "100"), 8),
        (("--by-duration", "P1D"), 0),
        (("--to-datetime", "2030-01-01T00:00:00.000"), 8),
        (("--to-offset", "6"), 6),
        (("--to-current",), 6),
    ]:
        command.text(*reset, *goal, "--execute")
        assert now() == wanted, goal
    file = tmp_path / "offsets.csv"
    file.write_text(command.text(*reset, "--to-offset", "1", "--export"))
    assert file.read_text() == f"{topic},0,1\n"
    command.text("reset-offsets", "--group", group, "--from-file", str(file), "--execute")
    assert now() == 1
    command.text(*reset, "--to-earliest", "--to-latest", code=Exit.USAGE)
    command.text("reset-offsets", "--group", group, "--topic", "no-such-topic", "--to-earliest", code=Exit.NOT_FOUND)
    assert command.document("delete-offsets", group, "-t", f"{topic}:0")[0]["deleted"]
    assert command.document("describe", group) == []
    assert command.document("delete", group) == [{"group": group, "deleted": True, "error": None}]
    assert command.document("delete", group, code=Exit.NOT_FOUND)[0]["error"] == "there is no such group"


def test_a_group_is_made_by_its_first_offsets(place: Place, command: Command) -> None:
    produce(place, [b"0"])
    command.text("reset-offsets", "--group", "made", "--topic", place.topic, "--to-latest", "--execute")
    assert command.rows("describe", "made")[1][:6] == ["made", place.topic, "0", "1", "1", "0"]
    command.text("delete", "made")


def test_the_tables_are_those_of_kafkas_tool(place: Place, command: Command) -> None:
    missing = cells_java.missing()
    if missing:
        assert missing in LISTED_SKIPS
        pytest.skip(missing)
    consumed(place, 2)
    group = place.topic

    def theirs(*arguments: str) -> list[list[str]]:
        said = cells_java.run(kafka.CONSUMER_GROUPS, place, *arguments)
        return [row for row in cells_java.table(said) if row and row[0] in ("GROUP", group)]

    for options in ((), ("--verbose",), ("--state", "--verbose")):
        assert command.rows("describe", group, *options) == theirs("--describe", "--group", group, *options)
    reset = ("--group", group, "--topic", place.topic, "--to-earliest", "--execute")
    assert theirs("--reset-offsets", *reset) == command.rows("reset-offsets", *reset)
    assert command.rows("describe", group) == theirs("--describe", "--group", group)
    command.text("delete", group)
    assert theirs("--list") == []
