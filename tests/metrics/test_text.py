"""The page parses whatever peers call themselves, and each value reads back as it was sent."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from quorumlog.histogram import BUCKETS, Histogram
from quorumlog_server.metrics.bounded import BoundedLabels
from quorumlog_server.metrics.reading import Pace, Reading
from quorumlog_server.metrics.series import Kind, Series
from quorumlog_server.metrics.text import page_of

NAMES = ("group", "client", "software")
FOREIGN = Series("foreign", Kind.GAUGE, "", NAMES, 'What do "peers" say?\nA line\\more.')
ODD = [
    "", "_other", '"', "\\", "\n", '\\"', "\\n", "}", '{a="b"} 1', "\r", "\t", "\0", "\x85",
    "\u2028", "ü", "日本", "💥", "\ufeff",
]  # fmt: skip
BETWEEN = ['"', "\\", "\n", ",", "{", "}", " ", "#", "=", "ü", "💥", "\r", "a", "0"]


def random_names(count: int) -> list[tuple[str, str, str]]:
    rng = random.Random(4711)

    def name() -> str:
        pieces = [rng.choice(BETWEEN) if rng.random() < 0.7 else chr(rng.randrange(1, 0xD800)) for _ in range(9)]
        return rng.choice(ODD) if rng.random() < 0.3 else "".join(pieces)

    return list(dict.fromkeys((f"{number}{name()}", name(), name()) for number in range(count)))


def page(names: list[tuple[str, str, str]]) -> str:
    reading = Reading()
    for number, labels in enumerate(names):
        reading.add(FOREIGN, number, *labels)
    return page_of((FOREIGN,), BoundedLabels(5_000).bound(reading), Pace()).decode()


def test_a_thousand_foreign_names_read_back_as_they_were_sent() -> None:
    names = random_names(1_000)
    (family,) = text_string_to_metric_families(page(names))
    found = {tuple(sample.labels[name] for name in NAMES): sample.value for sample in family.samples}
    assert found == {labels: number for number, labels in enumerate(names)}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian: prometheus) is not installed")
def test_promtool_takes_the_page() -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=page(random_names(1_000)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_half_of_a_pair_of_surrogates_does_not_end_the_page() -> None:
    assert "\\ud800" in page([("\ud800", "", "")])


def test_a_histogram_as_prometheus_wants_it() -> None:
    series = Series("wait_seconds", Kind.HISTOGRAM, "seconds", ("api",), "How long?", buckets="call")
    times, reading = Histogram("call"), Reading()
    for seconds in (0.0001, 0.001, 0.3, 99):
        times.observe(seconds)
    reading.add_histogram(series, times, "Produce")
    text = page_of((series,), BoundedLabels().bound(reading), Pace()).decode()
    (family,) = text_string_to_metric_families(text)
    assert family.type == "histogram"
    buckets = {one.labels["le"]: one.value for one in family.samples if one.name.endswith("_bucket")}
    assert len(buckets) == len(BUCKETS["call"]) + 1
    assert (buckets["0.0005"], buckets["0.001"], buckets["0.25"], buckets["0.5"], buckets["30.0"]) == (1, 2, 2, 3, 3)
    others = {one.name: one.value for one in family.samples if not one.name.endswith("_bucket")}
    assert others == {"quorumlog_wait_seconds_count": 4, "quorumlog_wait_seconds_sum": pytest.approx(99.3011)}


@pytest.mark.parametrize(("value", "text"), [(True, "1"), (2**63, "9223372036854775808"), (0.5, "0.5"), (1e-7, "1e-07"),
                                            (float("inf"), "+Inf"), (float("nan"), "NaN")])  # fmt: skip
def test_numbers_to_the_last_digit(value: float, text: str) -> None:
    series, reading = Series("x", Kind.GAUGE, "", (), "?"), Reading()
    reading.add(series, value)
    assert page_of((series,), BoundedLabels().bound(reading), Pace()).endswith(f"quorumlog_x {text}\n".encode())


def test_the_reader_gives_way_while_it_reads_much() -> None:
    slept: list[float] = []
    now = iter(range(1_000_000))
    pace = Pace(slept.append, lambda: next(now) / 10_000)  # each look at the clock is 0.1 ms later
    reading = Reading(pace=pace)
    assert list(reading.each(range(10_000))) == list(range(10_000))
    assert len(slept) >= 10_000 / 32 / 12
