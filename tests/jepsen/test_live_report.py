"""The report of a live run: well-formed, without outside resources, with every strike; and its exit codes."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

from jepsen.checkers.findings import Finding
from jepsen.live.command import closing_lines
from jepsen.live.disks.ways import Ways
from jepsen.live.evidence.ledger import Ledger, ProducerSpec
from jepsen.live.evidence.pauses import ack_times, pause_of
from jepsen.live.minimums import Minimum
from jepsen.live.plan import Blow, Kind, Role, Strike, Target
from jepsen.live.report.chart import BAND_MS, COLOURS, NAMESPACE, bands
from jepsen.live.report.report import FACTS, PAGE, facts_of, write_report
from jepsen.live.run import Options, Outcome
from jepsen.live.striker import BlowRecord, StrikeRecord

LENGTH_MS = BAND_MS + 40_000  # two bands


def strike_record(number: int, kind: Kind, blow: Blow, began_ms: int, evidence: str = "seen") -> StrikeRecord:
    target = Target(Role.NODE, number % 3 + 1)
    told = BlowRecord(
        node_id=target.number, blow=blow, aim=str(target), way="a way", from_ms=began_ms, until_ms=began_ms + 2_000,
        bit=True, evidence=evidence,
    )  # fmt: skip
    return StrikeRecord(
        strike=Strike(number=number, kind=kind, blows=((blow, target),), hold_ms=2_000, calm_ms=0),
        expected_ms=5_000, blows=[told], began_ms=began_ms, ended_ms=began_ms + 2_000, whole_ms=began_ms + 4_000,
    )  # fmt: skip


def outcome(findings: tuple[Finding, ...] = (), met: bool = True) -> Outcome:
    """An acknowledgement each 100 ms; every kind of blow once, the last one in the second band."""
    ledger = Ledger((ProducerSpec(name="steady", idempotent=True, per_second=10),), partitions=2)
    for at_ms in range(0, LENGTH_MS, 100):
        sent = ledger.sent[0][at_ms // 100 % 2]
        sent.acknowledge(sent.send(), len(sent) - 1, at_ms)
    kinds = (
        Kind.KILL, Kind.PAUSE, Kind.RESTART, Kind.HUNG_DISK, Kind.FULL_DISK, Kind.LOW_DISK, Kind.FAILING_DISK,
    )  # fmt: skip
    records = [
        strike_record(number, kind, blow, number * 20_000, "<b>&amp; said the node")
        for number, (kind, blow) in enumerate(zip(kinds, Blow, strict=True), 1)
    ]
    times = ack_times(ledger, LENGTH_MS)
    return Outcome(
        options=Options(seed=7, minutes=2), ways=Ways(True, False, ("mounting <is> refused",)), ledger=ledger,
        findings=list(findings), strikes=records, pauses=[pause_of(record, times) for record in records], times=times,
        minimums=[Minimum("acknowledged records", 10, 1_600 if met else 1)], interrupted=False, acknowledged=1_600,
        records_read=1_600, leader_only_missing=3, renumbered=["record <9> twice"],
        reader_errors={}, strikes_from_ms=0, strikes_until_ms=LENGTH_MS,
    )  # fmt: skip


class Balanced(HTMLParser):
    """Asserts that every tag is closed, in order. text: all that a reader sees."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.resources: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.resources += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "srcset")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.resources += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> where nothing or another tag is open"

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(folder: Path, told: Outcome) -> Balanced:
    found = Balanced()
    found.feed(write_report(told, folder).read_text())
    found.close()
    assert found.open == []
    return found


def test_the_page_is_well_formed_and_needs_nothing_from_outside(tmp_path: Path) -> None:
    found = parsed(tmp_path, outcome())
    assert found.resources == []
    assert not {"script", "link", "iframe", "img"} & set(found.tags)
    text = (tmp_path / PAGE).read_text()
    assert not re.search(r"url\(|@import", text)
    assert {*re.findall(r"https?://[^\"' <]+", text)} == {NAMESPACE}


def test_the_page_tells_every_strike_and_escapes_what_nodes_said(tmp_path: Path) -> None:
    found = parsed(tmp_path, outcome())
    assert found.text.count("<b>&amp; said the node") == 7
    assert "mounting <is> refused" in found.text and "record <9> twice" in found.text
    assert "VALID" in found.text and "What was broken" not in found.text
    for kind in ("kill", "pause", "restart", "hung-disk", "full-disk", "low-disk", "failing-disk"):
        assert kind in found.text


def test_the_page_of_a_broken_promise_says_what_was_broken(tmp_path: Path) -> None:
    found = parsed(tmp_path, outcome((Finding("lost-write", "record 5 is nowhere", 3_000_000_000),)))
    assert "INVALID" in found.text
    assert "lost-write at 3.0 s: record 5 is nowhere" in found.text
    assert "1 findings" in found.text


def test_each_band_is_an_svg_with_the_faults_of_its_time() -> None:
    facts = facts_of(outcome())
    svgs = [ElementTree.fromstring(band) for band in bands(facts)]
    assert len(svgs) == 2
    bars = [[bar for bar in svg.iter(f"{{{NAMESPACE}}}rect") if bar.get("fill") in COLOURS.values()] for svg in svgs]
    assert sum(map(len, bars)) == 7 and bars[1]
    for svg in svgs:
        right = float(svg.get("viewBox", "").split()[2])
        for bar in svg.iter(f"{{{NAMESPACE}}}rect"):
            assert 0 <= float(bar.get("x", "-1")) <= float(bar.get("x", "")) + float(bar.get("width", "")) <= right


def test_a_run_without_strikes_or_time_still_has_a_page(tmp_path: Path) -> None:
    empty = outcome(met=False)
    empty.strikes, empty.pauses = [], []
    empty.times = ack_times(empty.ledger, 0)
    assert "TOO LITTLE EXERCISED" in parsed(tmp_path, empty).text


def test_the_facts_are_json_with_every_number_of_the_page(tmp_path: Path) -> None:
    write_report(outcome(), tmp_path)
    facts = json.loads((tmp_path / FACTS).read_text())
    assert (facts["verdict"], facts["seed"], facts["acknowledged"]) == ("VALID", 7, 1_600)
    assert [strike["number"] for strike in facts["strikes"]] == [1, 2, 3, 4, 5, 6, 7]
    assert sum(map(sum, facts["timeline"]["by_partition"])) == 1_600
    assert facts["repeat"] == "./dev live --minutes 2 --seed 7 --nodes 3 --rate 400"


LOST = Finding("lost-write", "gone")


@pytest.mark.parametrize(
    ("told", "verdict", "code"),
    [
        (outcome(), "VALID", 0),
        (outcome((LOST,)), "INVALID", 1),
        (outcome(met=False), "TOO LITTLE EXERCISED", 2),
        (outcome((LOST,), met=False), "INVALID", 1),
    ],
    ids=["valid", "broken", "too little", "broken, and too little"],
)
def test_the_exit_code_follows_the_verdict(told: Outcome, verdict: str, code: int) -> None:
    assert (told.verdict, told.exit_code) == (verdict, code)
    assert verdict in closing_lines(told)[0]
