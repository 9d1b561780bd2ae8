"""The demo's second act on a cluster of its own, without Spark: exact counts, in bounded time, and no process left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from quorumlog.testing import LocalCluster
from quorumlog_cli.demo import second_act
from quorumlog_cli.demo.flights import Figures, figures_of, to_flights
from quorumlog_cli.demo.second_act import SecondAct
from quorumlog_cli.demo.steps import Steps

CARRIERS = ["UA", "AA", "DL", "B6", "EV"]
ROWS = 20_000


def members() -> list[psutil.Process]:
    return processes_of("quorumlog_cli.demo.member")


def processes_of(module: str) -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if module in process.cmdline():
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    root = tmp_path_factory.mktemp("live") / "cluster"
    with LocalCluster(root, config={"group.initial.rebalance.delay.ms": "0"}) as cluster:
        yield cluster


def test_a_group_that_cannot_finish_is_told_in_time(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic lacks a flight: the act ends at its limit, with a problem, and leaves no process."""
    monkeypatch.setattr(second_act, "LIMIT_S", 5.0)
    monkeypatch.setattr(second_act, "COUNTS", "other-counts")
    with cluster.topic("other-flights", partitions=1) as topic:
        topic.produce(["0,2013,2,UA,N1"])
        figures = {"UA": Figures(flights=2, departed=2, delay_min=4, mean_delay_min=2.0)}
        act = SecondAct(cluster, Steps(Console(quiet=True)), topic.name, figures, 2, tmp_path)
        problems = act.run()
        assert any("of 2 flights were counted in 5 s" in problem for problem in problems)
        assert members() == []
        assert len(processes_of("quorumlog_server")) == 3, "the node that was killed serves again"


@pytest.mark.timeout(240)
def test_the_counts_equal_the_csvs(cluster: LocalCluster, tmp_path: Path) -> None:
    lines = [f"2013,{n % 60},{CARRIERS[n * n % 11 % 5]},N{n % 97}" for n in range(ROWS)]
    flights = to_flights("year,dep_delay,carrier,tailnum\n" + "\n".join(lines))
    figures = figures_of(flights)
    with cluster.topic("flights", partitions=6) as topic:
        with cluster.client.producer() as producer:
            producer.send_arrow(topic.name, flights.records)
        act = SecondAct(cluster, Steps(Console(quiet=True)), topic.name, figures, 2, tmp_path)
        problems = act.run()
        logs = [path.read_text() for path in sorted(tmp_path.glob("member-*.log"))]
        assert problems == [], logs
        assert act.counts == {carrier: one.flights for carrier, one in figures.items()}
        said = " ".join(moment.what for moment in act.moments)
        assert "kill -9 member" in said and "kill -9 node" in said and "started again" in said
        assert members() == []
        wrong = {**figures, "UA": replace(figures["UA"], flights=figures["UA"].flights + 1)}
        act.figures = wrong
        assert any("UA: the CSV has" in problem for problem in act._compare())
