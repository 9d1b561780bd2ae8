"""The demo's third act on a cluster of its own: each batch once though the driver is killed, and no process left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from rich.console import Console

from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.demo import third_act
from quorumlog_cli.demo.flights import Figures, figures_of, to_flights
from quorumlog_cli.demo.steps import Steps
from quorumlog_cli.demo.third_act import ThirdAct
from tests.spark.test_session_processes import MARK, marked

CARRIERS = ["UA", "AA", "DL", "B6", "EV"]
ROWS = 2_000
END_S = 10.0  # for Spark's workers of a driver that was killed


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    if reason := third_act.why_not():
        pytest.skip(reason)
    with LocalCluster(tmp_path_factory.mktemp("live") / "cluster") as made:
        yield made


@pytest.fixture
def mark(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of all processes that the act starts, and of no node's."""
    mark = uuid4().hex
    monkeypatch.setenv(MARK, mark)
    return mark


def nothing_is_left(mark: str) -> bool:
    return wait_until(lambda: not marked(mark), END_S, "Spark's processes to end", lambda: str(marked(mark)))


@pytest.mark.timeout(400)
def test_the_counts_equal_the_csvs(cluster: LocalCluster, tmp_path: Path, mark: str) -> None:
    lines = [f"2013,{n % 60},{CARRIERS[n * n % 11 % 5]},N{n % 97}" for n in range(ROWS)]
    flights = to_flights("year,dep_delay,carrier,tailnum\n" + "\n".join(lines))
    with cluster.topic("flights", partitions=6) as topic:
        with cluster.client.producer() as producer:
            producer.send_arrow(topic.name, flights.records)
        act = ThirdAct(cluster, Steps(Console(quiet=True)), topic.name, figures_of(flights), 2, tmp_path)
        problems = act.run()
    assert problems == [], (tmp_path / "stream.log").read_text()[-3_000:]
    said = " ".join(moment.what for moment in act.moments)
    assert "kill -9 the stream's driver" in said and "started again" in said
    assert len(third_act.by_batch(act.totals)) > 2
    assert nothing_is_left(mark)


def test_a_stream_that_cannot_finish_is_told_in_time(
    cluster: LocalCluster, tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not ready by then."""
    monkeypatch.setattr(third_act, "LIMIT_S", 1.0)
    monkeypatch.setattr(third_act, "TOTALS", "other-totals")
    figures = {"UA": Figures(flights=2, departed=2, delay_min=4, mean_delay_min=2.0)}
    with cluster.topic("other-flights", partitions=1) as topic:
        problems = ThirdAct(cluster, Steps(Console(quiet=True)), topic.name, figures, 2, tmp_path).run()
    assert "only 0 of 2 flights were counted in 1 s" in problems
    assert nothing_is_left(mark)
