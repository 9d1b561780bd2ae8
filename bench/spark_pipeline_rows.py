"""What Spark's streams and loads took, as rows: ours beside Spark's own source, round by round. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.report import Row
from bench.spark_rows import OF, Session, WrongAnswer

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
