"""What Spark's sessions took, as rows: ours beside Spark's own Kafka source, round by round. Pure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.measuring.report import Row

COLD_GOAL = 0.65  # of the time of Spark's source, at most
WARM_GOAL = 2.5  # times the rate of Spark's source, at least
OF = "Spark's source"
GRPC_GOAL = 0.9  # of the lane's rate, at least
OF_LANE = "the lane"


class WrongWay(Exception):
    """A session was read by another transport than it should have been. The message says what the brokers counted."""


class WrongAnswer(Exception):
    """A session did not read what was written. The message names both answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """session_s: from the process's start until the session was ready. reads_s, used_s, answers: of each read, the
    first is the cold one; used_s is processor time of Java and of Spark's Python processes, 0 where it is unknown."""

    version: str
    session_s: float
    reads_s: Sequence[float]
    used_s: Sequence[float]
    answers: Sequence[Sequence[int]]

    @property
    def warm_s(self) -> float:
        """The median of the later reads."""
        return statistics.median(self.reads_s[1:])

    @property
    def warm_used_s(self) -> float:
        return statistics.median(self.used_s[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One session of each. empty: ours without Numba's cache, as right after an installation. quick: ours with the
    cache, after `quorumlog.spark.quick_start`. lane: as quick, but by Kafka's protocol; the other three of ours read by
    gRPC."""

    ours: Session
    theirs: Session
    empty: Session
    quick: Session
    lane: Session

    @property
    def all(self) -> tuple[Session, ...]:
        return self.ours, self.theirs, self.empty, self.quick, self.lane


def parse_session(output: str) -> Session:
    """From the last line of what spark_session.py prints."""
    found: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return Session(**found)


def check_way(name: str, sent_bytes: float, least_bytes: int) -> None:
    """sent_bytes: of records, by gRPC, in this session. least_bytes: 0: none must be. Raises WrongWay."""
    if sent_bytes < least_bytes or (sent_bytes and not least_bytes):
        wanted = f"at least {least_bytes:,}" if least_bytes else "none"
        raise WrongWay(f"{name}: the brokers sent {sent_bytes:,.0f} bytes by gRPC, and should have sent {wanted}")


def check_answers(turn: Round, records: int) -> None:
    """Every read of the round must give the same answer, of that many records. Raises WrongAnswer."""
    wanted = list(turn.theirs.answers[0])
    if wanted[0] != records:
        raise WrongAnswer(f"Spark's source read {wanted[0]} of {records} records")
    for session in turn.all:
        for answer in session.answers:
            if list(answer) != wanted:
                raise WrongAnswer(f"one read gave {list(answer)}, another {wanted}")


def rows(rounds: Sequence[Round], records: int, *, judged: bool) -> list[Row]:
    """judged: whether the goals are stated; a quick run states none."""
    cold_goal, warm_goal = (COLD_GOAL, WARM_GOAL) if judged else (None, None)

    def cold(name: str, value: Callable[[Session], float], goal: float | None) -> list[Row]:
        theirs = [value(turn.theirs) for turn in rounds]
        of_ours = {
            name: [value(turn.ours) for turn in rounds],
            f"{name}, empty cache": [value(turn.empty) for turn in rounds],
            f"{name}, quick start": [value(turn.quick) for turn in rounds],
            f"{name}, quick start, lane": [value(turn.lane) for turn in rounds],
        }
        return [
            Row(name=f"Spark's: {name}", unit="s", rounds=theirs),
            *(
                Row(name=which, unit="s", rounds=ours, shares=_shares(ours, theirs), of=OF, goal=goal,
                    at_least=False)
                for which, ours in of_ours.items()
            ),
        ]  # fmt: skip

    def warm() -> list[Row]:
        theirs = [records / turn.theirs.warm_s for turn in rounds]
        of_ours = {
            "later reads": [records / turn.ours.warm_s for turn in rounds],
            "later reads, quick start": [records / turn.quick.warm_s for turn in rounds],
            "later reads, quick start, lane": [records / turn.lane.warm_s for turn in rounds],
        }
        by_grpc, by_lane = of_ours["later reads, quick start"], of_ours["later reads, quick start, lane"]
        return [
            Row(name="Spark's: later reads", unit="records/s", rounds=theirs),
            *(
                Row(name=which, unit="records/s", rounds=ours, shares=_shares(ours, theirs), of=OF, goal=warm_goal)
                for which, ours in of_ours.items()
            ),
            Row(
                name="later reads by gRPC, quick start", unit="records/s", rounds=by_grpc,
                shares=_shares(by_grpc, by_lane), of=OF_LANE, goal=GRPC_GOAL if judged else None,
            ),
        ]  # fmt: skip

    made = [
        *cold("first read of a session", lambda session: session.reads_s[0], cold_goal),
        *cold("  from the start of its process", lambda session: session.session_s + session.reads_s[0], None),
        *warm(),
    ]
    if all(session.used_s[0] for turn in rounds for session in turn.all):
        made += cold("processor time of the first read", lambda session: session.used_s[0], None)
        made += cold("processor time of a later read", lambda session: session.warm_used_s, None)
    return made


def _shares(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    return [mine / other for mine, other in zip(ours, theirs, strict=True)]


STREAM_GOAL = 2.5  # times the rate of Spark's source, at least
STEADY_GOAL = 1.0  # of the duration of a batch of Spark's source, at most
LOAD_GOAL = 2.0  # times the rate of Spark's source into its Parquet sink, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    ours: Session
    theirs: Session


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRound:
    """stream: a topic counted by partition, with Trigger.AvailableNow. steady: a stream of small batches. load: a topic
    into Parquet files."""

    stream: Pair
    steady: Pair
    load: Pair


def check_counts(turn: PipelineRound, records: int) -> None:
    """Each run must have counted all records. Raises WrongAnswer."""
    for name, pair in (("stream", turn.stream), ("load", turn.load)):
        for session in (pair.ours, pair.theirs):
            for (counted,) in session.answers:
                if counted != records:
                    raise WrongAnswer(f"{name}: {counted} of {records} records")


def pipeline_rows(rounds: Sequence[PipelineRound], records: int, *, judged: bool) -> list[Row]:
    """judged: whether the goals are stated; a quick run states none."""
    return [
        *_rates(
            "stream of all, availableNow", [turn.stream for turn in rounds], records, STREAM_GOAL if judged else None
        ),
        *_durations(
            "batch of a stream, 1,000 records/s", [turn.steady for turn in rounds], STEADY_GOAL if judged else None
        ),
        *_rates("load into Parquet", [turn.load for turn in rounds], records, LOAD_GOAL if judged else None),
    ]


def _rates(name: str, pairs: Sequence[Pair], records: int, goal: float | None) -> list[Row]:
    """The first run of a session states no goal: it begins with Java's start-up on both sides."""
    made = []
    for which, first, wanted in ((f"{name}, first", True, None), (f"{name}, later", False, goal)):
        ours, theirs = (
            [records / (one.reads_s[0] if first else one.warm_s) for one in sessions]
            for sessions in ([pair.ours for pair in pairs], [pair.theirs for pair in pairs])
        )
        made += _beside(which, "records/s", ours, theirs, wanted, at_least=True)
    return made


def _durations(name: str, pairs: Sequence[Pair], goal: float | None) -> list[Row]:
    """Of each session the median of its batches but the first."""
    ours, theirs = [pair.ours.warm_s for pair in pairs], [pair.theirs.warm_s for pair in pairs]
    return _beside(name, "s", ours, theirs, goal, at_least=False)


def _beside(
    name: str, unit: str, ours: Sequence[float], theirs: Sequence[float], goal: float | None, *, at_least: bool
) -> list[Row]:
    shares = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    return [
        Row(name=f"Spark's: {name}", unit=unit, rounds=theirs),
        Row(name=name, unit=unit, rounds=ours, shares=shares, of=OF, goal=goal, at_least=at_least),
    ]
