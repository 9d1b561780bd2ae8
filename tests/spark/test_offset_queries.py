"""Planning asks again where the cluster does not answer, and tells a mistake at once."""

from __future__ import annotations

from typing import Any

import pytest

from quorumlog.client.errors import ConfigError, NoProtocol, QuorumlogError, RequestFailed, Unavailable
from quorumlog.errors import ErrorCode
from quorumlog.spark.read.cluster import OpenCluster, asked
from quorumlog.spark.read.options import parse_read_options, parse_stream_options

BASE = {"bootstrap.servers": "h:1", "subscribe": "orders"}


class Answers:
    """Fails `failures` times, then answers."""

    def __init__(self, failures: int, error: QuorumlogError) -> None:
        self.failures, self.error = failures, error
        self.asked = self.begun = 0
        self.slept: list[float] = []

    def ask(self) -> str:
        self.asked += 1
        if self.asked <= self.failures:
            raise self.error
        return "offsets"

    def begin_anew(self) -> None:
        self.begun += 1

    def run(self, tries: int) -> str:
        return asked(self.ask, tries=tries, interval_ms=250, begin_anew=self.begin_anew, sleep=self.slept.append)


@pytest.mark.parametrize("error", [Unavailable("down"), RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER, "")], ids=repr)
def test_it_asks_again_with_a_new_client(error: QuorumlogError) -> None:
    answers = Answers(2, error)
    with pytest.warns(UserWarning, match="1 more tries"):
        assert answers.run(3) == "offsets"
    assert (answers.asked, answers.begun, answers.slept) == (3, 2, [0.25, 0.25])
    with pytest.warns(UserWarning), pytest.raises(type(error)):
        Answers(2, error).run(2)


@pytest.mark.parametrize("error", [ConfigError("no topic"), NoProtocol("none")], ids=repr)
def test_what_time_does_not_mend_is_told_at_once(error: QuorumlogError) -> None:
    answers = Answers(1, error)
    with pytest.raises(type(error)):
        answers.run(3)
    assert answers.asked == 1


def test_the_options_are_those_of_kafkas_source() -> None:
    for parse in (parse_read_options, parse_stream_options):
        assert (parse(BASE).offset_tries, parse(BASE).offset_retry_interval_ms) == (3, 1000)
        given = parse({**BASE, "fetchoffset.numretries": "5", "fetchoffset.retryintervalms": "20"})
        assert (given.offset_tries, given.offset_retry_interval_ms) == (5, 20)


def test_a_plan_asks_as_often_as_the_options_say() -> None:
    made: list[Any] = []

    class Silent:
        def close(self) -> None:
            made.append("closed")

        def describe_topics(self, names: list[str]) -> None:
            raise Unavailable("nobody is there")

    def make(options: Any) -> Any:
        made.append("made")
        return Silent()

    options = parse_read_options({**BASE, "fetchOffset.numRetries": "2", "fetchOffset.retryIntervalMs": "1"})
    with pytest.warns(UserWarning, match="nobody is there"), pytest.raises(Unavailable):
        OpenCluster(options, make).spans()
    assert made == ["made", "closed", "made"]
