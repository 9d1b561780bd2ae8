"""What a member of a group cannot choose on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog_cli.commands.records import consume
from quorumlog_cli.commands.records.consume import _checked
from quorumlog_cli.main import main
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.places import Range, parse_places


@pytest.mark.parametrize(
    ("places", "partitions", "words"),
    [
        (["5"], None, "-O takes beginning or end; `quorumlog group reset-offsets`"),
        (["-3"], None, "-O takes beginning or end"),
        (["@5"], None, "-O takes beginning or end"),
        ([], [0], "share all partitions; leave out -p or --group"),
    ],
)
def test_a_member_begins_where_its_group_does(places: list[str], partitions: list[int] | None, words: str) -> None:
    with pytest.raises(CliError, match=words) as caught:
        _checked(parse_places(places, to_end=False, now_ms=0), partitions)
    assert caught.value.code is Exit.USAGE


def test_a_group_without_a_name_is_not_reading_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["consume", "orders", "--group", ""]) == Exit.USAGE
    assert "--group is empty" in capsys.readouterr().err


@pytest.mark.parametrize(("places", "start"), [([], "earliest"), (["beginning"], "earliest"), (["end"], "latest")])
def test_a_group_without_offsets_may_begin_at_either_end(places: list[str], start: str) -> None:
    wanted = _checked(parse_places(places, to_end=True, now_ms=0), None)
    assert (wanted.start, wanted.stop) == (start, "latest")


def test_a_member_that_stops_at_the_end_of_a_missing_topic_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cluster:
        admin: Cluster

        def describe_topic(self, topic: str) -> None:
            if topic != "there":
                raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic)

    @contextmanager
    def connected(target: Target) -> Iterator[Cluster]:
        assert target.options == {"client_id": "me"}, "an admin client takes no option of consumers"
        cluster = Cluster()
        cluster.admin = cluster
        yield cluster

    monkeypatch.setattr(consume, "connected", connected)
    options = {"client_id": "me", "session_timeout_ms": "9000"}
    target = Target(bootstrap_servers="b", origin="the test", options=options)
    with pytest.raises(RequestFailed, match="UNKNOWN_TOPIC_OR_PARTITION: gone"):
        consume._consume_as_member(target, ["there", "gone"], "g", Range(stop="latest"), None, lambda _: b"")
