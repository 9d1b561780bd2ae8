"""A fixed sample of `./dev differential`: Apache Kafka and we answer alike, but for the table of wanted differences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.kafka_tools import Unavailable, get_kafka
from differential.__main__ import lines_of
from differential.run import Play, Tally
from differential.sides import started
from differential.wanted import WANTED

SEEDS = (0, 1)  # every API in every version, and a story
CALLS_LEAST = 500
# Rows of the table that may explain nothing in the sample: a seed at which each was met, and None for what was met when
# sequences were drawn in another way, and by none of 80,000 calls since.
RARE: Mapping[str, int | None] = {
    "a transaction that a refused batch extends": 7012,
    "replicas that are none": 9008,
    "epochs of a member without topics": 9040,
    "one resource of an unknown kind": 9008,
    "taking away what there cannot be": 9003,
    "bytes behind a batch": 9002,
    "an instance that joins again": None,
    "the time of a repetition": None,
    "members who have not joined yet": 8063,
    "limits of no partition": 5080,
    "epochs of the future": 9006,
    "taking away from other resources": 9015,
    "no pattern": 9008,
    "a feature that is not there": 9016,
    "epochs below the first": 8032,
    "where a log begins that refuses records": 9009,
    "all offsets of a transaction, or none": 9027,
    "an empty transactional id": 9002,
    "topics without an election": 9028,
    "half a producer": 9028,
    "no feature": 9020,
    "an unknown kind of election": 9000,
    "transactions without a producer": 9002,
    "transactions without a producer that wants an answer": 8031,
    "a resource that is named twice": 9024,
    "a partition that is named twice": 9000,
    "settings of a broker": 9000,
    "synonyms": 9000,
    "zstd from older producers": 9000,
    "zstd from older producers that want no answer": 8064,
    "a producer that its coordinator fenced": 8081,
    "an empty name beside an id": 8012,
    "unknown ids that wait": 5012,
    "one batch that cannot be read": 5080,
    "new names that collide": 8060,
    "offsets of a group that rebalances": 7063,
    "a batch of each partition": 8092,
    "the assignor of a member that leaves": 9047,
    "the next segment": 10000,
    "a partition that is read twice": 10006,
    "the time of a compressed batch that claims an append time": 10009,
    "reassignments of no topic": 11008,
    "the last place of the consumer protocol": 9052,
}
PATIENT_S = 400


@pytest.mark.timeout(PATIENT_S)
def test_the_same_requests_get_the_same_answers(tmp_path: Path) -> None:
    try:
        kafka = get_kafka()
    except Unavailable as reason:
        pytest.skip(f"Apache Kafka cannot run here: {reason}")
    tally, told = Tally(), list[str]()
    with started(kafka, tmp_path) as sides:
        for seed in SEEDS:
            for finding in Play(sides, seed, tally).run():
                told += lines_of(finding, None)
        every = {(name, version) for name, (low, high) in sides.versions.items() for version in range(low, high + 1)}
    assert not told, "\n".join(told)
    idle = [row.name for row in WANTED if not tally.explained[row.name] and row.name not in RARE]
    assert not idle, "rows of differential/wanted.py that explain nothing: take them out, or name a seed in RARE"
    assert set(tally.calls) >= every, "each version of each API that both announce is asked at least once"
    assert len(sides.versions) >= 50 and tally.count >= CALLS_LEAST


def test_each_row_that_is_called_rare_is_a_row() -> None:
    assert set(RARE) <= {row.name for row in WANTED}
