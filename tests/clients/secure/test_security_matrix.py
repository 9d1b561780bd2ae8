"""Clients of others with TLS and logins: a sample of the matrix in CI, every cell in `./dev nightly`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import child_drivers
import command_drivers
import pytest
from logins import Driver
from python_drivers import Aiokafka, Confluent, KafkaPython
from secured_cluster import World, secured_cluster
from security_matrix import (
    AIOKAFKA,
    ALL,
    CELLS,
    CONFLUENT,
    FRANZ,
    GRPCURL,
    JAVA,
    KAFKA_PYTHON,
    KAFKAJS,
    KCAT,
    LISTED_SKIPS,
    MINIMUM,
    Cell,
    pairs,
    sample,
    table,
    version_of,
    why_not,
)
from situations import play


class Family(NamedTuple):
    """missing: why it cannot run here (one of LISTED_SKIPS), or ""."""

    driver: Callable[[], Driver]
    missing: Callable[[], str] = lambda: ""


HERE = {
    CONFLUENT: Family(Confluent),
    KAFKA_PYTHON: Family(KafkaPython),
    AIOKAFKA: Family(Aiokafka),
    JAVA: Family(lambda: child_drivers.Child(child_drivers.java_command), child_drivers.java_missing),
    KCAT: Family(command_drivers.Kcat, command_drivers.kcat_missing),
    FRANZ: Family(lambda: child_drivers.Child(child_drivers.franz_command), child_drivers.franz_missing),
    KAFKAJS: Family(lambda: child_drivers.Child(child_drivers.kafkajs_command), child_drivers.kafkajs_missing),
    GRPCURL: Family(command_drivers.Grpcurl, child_drivers.grpcurl_missing),
}
PAGE = Path(__file__).resolve().parents[3] / "docs" / "kafka-clients.md"
IN_CI = [cell for cell in CELLS if cell.family != GRPCURL]  # to compile that takes a minute
SAMPLE = sample(IN_CI)
Played = dict[Cell, "Future[str]"]


def play_all(family: str, cells: list[Cell], world: World, played: Played) -> None:
    """One after the other, in a thread for each family: they mostly wait."""
    driver = HERE[family].driver()
    try:
        old = version_of(driver.version()) < MINIMUM[family]
        for cell in cells:
            try:
                assert not old, f"{family} {driver.version()} is older than {MINIMUM[family]}"
                played[cell].set_result(play(driver, world, cell))
            except BaseException as error:
                played[cell].set_exception(error)
    finally:
        driver.close()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Played]:
    """The results of the cells that this run asks for."""
    asked: set[Cell] = set()
    for item in request.session.items:
        spec = getattr(item, "callspec", None)
        if item.path == request.path and spec is not None and "cell" in spec.params:
            asked.add(spec.params["cell"])
    runnable = [cell for cell in CELLS if cell in asked and not HERE[cell.family].missing()]
    found: Played = {cell: Future() for cell in runnable}
    with secured_cluster(tmp_path_factory.mktemp("secured"), runnable) as world:
        threads = [
            threading.Thread(target=play_all, args=(family, list(cells), world, found))
            for family, cells in groupby(runnable, lambda cell: cell.family)
        ]
        for thread in threads:
            thread.start()
        yield found
        for thread in threads:
            thread.join()


def judge(cell: Cell, played: Played) -> None:
    if missing := HERE[cell.family].missing():
        assert missing in LISTED_SKIPS, f"a skip that is not listed: {missing}"
        pytest.skip(missing)
    print(played[cell].result())  # what the application was told


def test_each_pair_of_values_is_in_the_sample() -> None:
    wanted = {pair for cell in IN_CI for pair in pairs(cell)}
    assert {pair for cell in SAMPLE for pair in pairs(cell)} == wanted
    assert (len(CELLS), len(IN_CI), len(SAMPLE), len(wanted)) == (497, 456, 89, 199)
    assert len(ALL) - len(CELLS) == sum(bool(why_not(cell)) for cell in ALL)


def test_an_older_client_than_the_minimum_does_not_count() -> None:
    assert version_of("2.10.1rc2") == (2, 10, 1) and version_of("2.9") < MINIMUM[CONFLUENT] <= version_of("2.10")


def test_the_page_has_the_numbers_of_cells() -> None:
    assert "\n".join(table()) in PAGE.read_text()


@pytest.mark.parametrize("cell", SAMPLE, ids=str)
def test_a_pair_of_each(cell: Cell, played: Played) -> None:
    judge(cell, played)


@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell not in SAMPLE], ids=str)
def test_every_other_cell(cell: Cell, played: Played) -> None:
    judge(cell, played)
