"""`quorumlog bench`: latencies in buckets, coordinated omission, Kafka's last line, two results side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog_cli.commands.bench.bench import _is_secret, _run, _shares
from quorumlog_cli.main import main
from quorumlog_cli.measuring.latencies import Latencies, Schedule
from quorumlog_cli.measuring.report import document, kafka_line
from quorumlog_cli.measuring.workers import Done
from quorumlog_cli.terminal.errors import Exit
from tests.parts import few

times = st.lists(st.integers(0, 10**9), min_size=1, max_size=80)


@settings(max_examples=few(100))
@given(first=times, second=times, percent=st.sampled_from([1, 50, 95, 99, 99.9, 100]))
def test_percentiles_agree_with_sorting(first: list[int], second: list[int], percent: float) -> None:
    merged, other = Latencies(), Latencies()
    for us in first:
        merged.add(us)
    for us in second:
        other.add(us)
    merged.merge(other)
    both = sorted(first + second)
    exact = both[max(0, -int(-len(both) * percent // 100) - 1)]
    assert exact * 127 / 128 - 1 <= merged.percentile_us(percent) <= exact
    assert (merged.count, merged.max_us, merged.total_us) == (len(both), both[-1], sum(both))


def test_a_stall_counts_for_all_that_were_due_in_it() -> None:
    """1,000 a second; the server stands still for a second, and the client with it."""
    schedule, done, now_us = Schedule(0, 1_000), Done(), 0
    for index in range(10_000):
        due_us = schedule.due_us(index, now_us)
        now_us = max(now_us, due_us)
        took_us = 1_000_000 if index == 5_000 else 100
        done.measured(due_us, now_us, now_us + took_us)
        now_us += took_us
    assert done.latencies.percentile_us(99) == 100  # as if nothing had been
    assert 800_000 < done.corrected.percentile_us(99) < 1_000_000


def test_without_a_rate_each_is_due_when_it_is_sent() -> None:
    assert [Schedule(5, None).due_us(index, 70 + index) for index in range(3)] == [70, 71, 72]


def made(kind: str = "produce", took_us: int = 2_000, throughput: float | None = None, count: int = 1_000) -> Any:
    done = Done(records=count, bytes=count * 100, began_us=1_000_000, ended_us=3_000_000)
    for _ in range(count if kind != "consume" else 0):
        done.latencies.add(took_us)
        done.corrected.add(took_us * 3)
    return document(kind, {"clients": 1, "throughput": throughput}, done, "2026-11-20T14:02:11+00:00")


def test_the_line_of_kafka_producer_perf_test() -> None:
    assert kafka_line(made()) == (
        "1000 records sent, 500.0 records/sec (0.05 MB/sec), 2.00 ms avg latency, 2.00 ms max latency, "
        "2.00 ms 50th, 2.00 ms 95th, 2.00 ms 99th, 2.00 ms 99.9th."
    )
    assert kafka_line(made("consume")) == "1000 records read, 500.0 records/sec (0.05 MB/sec)"


def test_only_a_rate_has_latencies_to_correct() -> None:
    assert "corrected_ms" not in made()
    assert made(throughput=500.0)["corrected_ms"]["max"] == 6.0


def test_two_results_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, found in (("1", made(count=1_000)), ("2", {**made(count=2_000, took_us=1_000), "at": "2026-11-21"})):
        Path(f"bench-{name}.json").write_text(json.dumps(found))
    Path("bench-3.json").write_text(json.dumps({**made("consume"), "at": "2026-11-19"}))
    assert main(["bench", "compare", "last", "-o", "json"]) == Exit.DONE
    found = json.loads(capsys.readouterr().out)
    changes = {row["name"]: row["percent"] for row in found["changes"]}
    assert found["kind"] == "produce" and changes["records_per_s"] == 100.0 and changes["latency max ms"] == -50.0
    assert main(["bench", "compare", "bench-1.json", "bench-3.json"]) == Exit.USAGE
    assert main(["bench", "compare", "bench-1.json"]) == Exit.USAGE
    assert main(["bench", "compare", "bench-1.json", "none.json"]) == Exit.NOT_FOUND
    Path("bench-4.json").write_text("{}")
    assert main(["bench", "compare", "bench-1.json", "bench-4.json"]) == Exit.DATA_INVALID


def test_workers_load_no_hypothesis(tmp_path: Path) -> None:
    """kio would, where it is installed: it made a folder of its own in the user's directory."""
    asked = "__import__('quorumlog_cli.measuring.workers').measuring.workers.Done("
    asked += "records=int(__import__('sys').modules.get('hypothesis', 'not kept out') is None))"
    _run("produce", {}, eval, [asked], tmp_path / "saved.json")  # type: ignore[list-item]  # this module loads it
    assert json.loads((tmp_path / "saved.json").read_text())["records"] == 1


@pytest.mark.parametrize(("records", "clients", "want"), [(10, 3, [4, 3, 3]), (2, 3, [1, 1, 0]), (5, 1, [5])])
def test_shares_are_all_of_it(records: int, clients: int, want: list[int]) -> None:
    assert _shares(records, clients) == want


@pytest.mark.parametrize("name", ["sasl_password", "sasl.jaas.config", "ssl_keystore_key", "sasl_oauthbearer_token"])
def test_no_secret_is_saved(name: str) -> None:
    assert _is_secret(name) and not _is_secret("linger_ms")
