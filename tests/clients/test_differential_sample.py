"""A fixed sample of `./dev differential`: Apache Kafka and we answer alike, but for the table of wanted differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.kafka_tools import Unavailable, get_kafka
from differential.__main__ import lines_of
from differential.run import Play, Tally
from differential.sides import started

SEEDS = (0, 1)  # every API in every version, and a story
CALLS_LEAST = 500
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
    assert set(tally.calls) >= every, "each version of each API that both announce is asked at least once"
    assert len(sides.versions) >= 50 and tally.count >= CALLS_LEAST
