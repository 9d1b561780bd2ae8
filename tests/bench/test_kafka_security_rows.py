"""The rows of security beside Kafka: shares of the same cluster in clear, ratios, times later than in clear."""

from __future__ import annotations

import pytest

from bench.access_rules import FIGURES
from bench.kafka.security import CONSUMED, LISTENERS, rules, security_rows
from bench.kafka.table import Samples
from bench.peers.secured import LOGIN, PLAIN, SECURE, TLS

RATES = {PLAIN: 100.0, TLS: 59.0, LOGIN: 98.0, SECURE: 50.0}


def measured(name: str, *, times: float = 1.0, later_ms: float = 2.0, per_s: float = 500.0) -> Samples:
    found = Samples(name)
    for listener in LISTENERS:
        found.add(f"produce {listener}", RATES[listener] * times)
        found.add(f"produce {listener} cost", 10.0 / times)
    for listener in CONSUMED:
        found.add(f"consume {listener}", RATES[listener] * times)
        found.add(f"consume {listener} cost", 10.0 / times)
    found.add(f"p99 {PLAIN}", 3.0)
    found.add(f"p99 {TLS}", 3.0 + later_ms)
    for figure in ("handshakes", "logins"):
        found.add(figure, per_s)
    found.add("everywhere p99", 150.0)
    found.add("rules made", 1.0)
    for figure in FIGURES:
        found.add(figure, 200.0)
    found.add("decisions", 1.0)
    return found


def test_a_share_is_of_the_same_cluster_and_a_ratio_is_of_kafkas() -> None:
    rows = {row.name: row for row in security_rows(measured("Kafka"), measured("quorumlog", times=1.1))}
    assert rows["produce 1 KiB, TLS"].reached is True  # 1.1 of Kafka's
    assert rows["produce 1 KiB, TLS / clear"].reached is False  # 0.59
    assert rows["consume 1 KiB, TLS / clear"].reached is True
    assert rows["produce 1 KiB, SCRAM and 10,000 rules / clear"].reached is True  # 0.98
    assert rows["Kafka: produce 1 KiB, TLS / clear"].reached is None
    assert rows["consume 1 KiB, TLS, nodes"].rounds == [10.0 / 1.1]


def test_rates_and_times_have_goals_of_their_own() -> None:
    rows = {row.name: row for row in security_rows(measured("Kafka"), measured("quorumlog", later_ms=0.5))}
    assert rows["p99 at half the rate of TLS, later by TLS"].reached is True
    assert rows["Kafka: p99 at half the rate of TLS, later by TLS"].rounds == [2.0]
    assert rows["TLS handshakes, both certificates, ours"].reached is True
    assert rows["logins by SCRAM-SHA-512, ours"].reached is False  # 500 of 1,500
    assert rows["logins by SCRAM-SHA-512"].reached is True  # as many as Kafka's
    assert rows["an access rule at each broker, p99, ours"].reached is True
    assert rows["10,000 rules loaded"].reached is True and rows["a decision asked again"].reached is False


@pytest.mark.parametrize("figure", ["produce TLS", "consume PLAIN", "p99 TLS", "handshakes", "logins", "decisions"])
def test_what_was_not_measured_says_why_and_costs_no_other_row(figure: str) -> None:
    ours = measured("quorumlog")

    def fail() -> None:
        raise OSError("no disk")

    ours.attempt([figure], fail)
    rows = security_rows(measured("Kafka"), ours)
    failed = [row for row in rows if row.failed]
    assert failed and all("no disk" in row.failed for row in failed)
    assert len([row for row in rows if row.reached is not None]) >= 7


def test_there_are_as_many_rules_as_is_said() -> None:
    assert len(rules()) == 10_002 and len(set(rules())) == 10_002
