"""A fixed sample of `./dev differential`: Apache Kafka and we answer alike, but for the table of wanted differences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.peers.kafka_tools import Unavailable, get_kafka
from differential.__main__ import lines_of
from differential.run import Play, Tally
from differential.sides import started
from differential.wanted import WANTED

SEEDS = (0, 1)  # every API in every version, and a story
CALLS_LEAST = 500
# Rows of the table that may explain nothing in the sample: a seed at which each was met, and None where none is known
# since AddPartitionsToTxn is drawn without partitions, or since users and quotas are drawn. What no sequence is likely
# to meet was asked by hand since: the time of a repetition. `--api create_acls` meets the rules.
RARE: Mapping[str, int | None] = {
    "a transaction that a refused batch extends": 7012,
    "replicas that are none": 11700,
    "epochs of a member without topics": 8031,
    "one resource of an unknown kind": 11316,
    "taking away what there cannot be": 11036,
    "bytes behind a batch": 11002,
    "an instance that joins again": 99733,
    "the time of a repetition": None,
    "members who have not joined yet": 11316,
    "limits of no partition": 5080,
    "epochs of the future": 8064,
    "a type of entity that is named twice": 9052,
    "taking away from other resources": 9052,
    "no pattern": 11019,
    "a feature that is not there": 5012,
    "epochs below the first": 8032,
    "where a log begins that refuses records": 11316,
    "all offsets of a transaction, or none": 11032,
    "an empty transactional id": 11016,
    "topics without an election": 5012,
    "half a producer": 11000,
    "no feature": 11316,
    "an unknown kind of election": 11316,
    "transactions without a producer": 11700,
    "transactions without a producer that wants an answer": 8031,
    "a resource that is named twice": 11024,
    "a partition that is named twice": 8092,
    "settings of a broker": 9052,
    "synonyms": 11316,
    "zstd from older producers": 11700,
    "zstd from older producers that want no answer": 22261,
    "a producer that its coordinator fenced": 11020,
    "an empty name beside an id": 11062,
    "unknown ids that wait": 5012,
    "one batch that cannot be read": 14202,
    "new names that collide": 11027,
    "offsets of a group that rebalances": 11020,
    "a batch of each partition": 8092,
    "the assignor of a member that leaves": 9047,
    "the next segment": 32459,
    "a partition that is read twice": 11006,
    "the time of a compressed batch that claims an append time": 10009,
    "reassignments of no topic": 11008,
    "the last place of the consumer protocol": 9052,
    "a cursor elsewhere": 8064,
    "filters of unknown kinds": 5012,
    "isolation of an unknown kind": 11016,
    "names that no topic can have": 5012,
    "transactions that are not there": 5012,
    "a topic without an id in a session": 11022,
    "no assignments": 9052,
    "other resources": 5012,
    "names beside unknown ids": None,
    "rules of unknown kinds": None,
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
