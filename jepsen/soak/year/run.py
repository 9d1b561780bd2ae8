"""One run of the virtual year: events, samples, what must have happened at least, and the verdict."""

from __future__ import annotations

from collections.abc import Callable

from jepsen.soak.gauges import Finding, Gauges, too_little
from jepsen.soak.outcome import Outcome
from jepsen.soak.telling import Telling
from jepsen.soak.year import events as kinds
from jepsen.soak.year.bounds import Found, Sampler
from jepsen.soak.year.model import Broken
from jepsen.soak.year.topics import DAY_MS
from jepsen.soak.year.year import Year

WANTED_A_DAY = {  # so often each must have happened, or the run proves too little
    "batches": 250,
    "records": 600,
    "segments rolled": 18,
    "segments that left": 15,
    "compactions": 3,
    "transactions ended": 20,
    "topics made anew": 0.2,
    "settings changed": 0.15,
    "starts": 0.35,
    "kills": 0.1,
    "power cuts": 0.1,
    "directories failed": 0.05,
    "directories brought back": 0.03,
    "moves ended": 1,
    "moves cancelled": 0.02,
    "moves that the end of a process met": 0.05,
    "cleaner deaths": 0.1,
    "index files damaged": 1.5,
    "audits": 0.08,
    "logs read and compared": 3,
}


def run_year(seed: int, days: float, say: Callable[[str], None] = lambda _: None) -> Outcome:
    """say: is given a line now and then."""
    telling = Telling(say)
    gauges = Gauges("days")
    sampler = Sampler(gauges)

    def on_sample(year: Year) -> None:
        sampler.sample(year.machine, year.models, year.now_ms)
        telling.tell(f"day {year.now_ms / DAY_MS:.0f} of {days:g}")

    def on_start(year: Year) -> None:
        process = year.machine.running
        scanned = sum(
            replica.log.recovery.scanned_bytes
            for replica in process.plane.registry.replicas.values()
            if replica.log is not None
        )
        found = Found(year.machine)
        sampler.started(year.now_ms / DAY_MS, process, found.files + found.future_files, scanned)

    def on_look(year: Year) -> None:
        sampler.note_writes(year.models)
        sampler.note_logs(year.machine.running, year.models, year.now_ms)

    year = Year(seed, on_sample, on_start, on_look)
    findings: list[Finding] = []
    try:
        year.begin()
        year.run(days)
    except Broken as broken:
        findings.append(Finding(broken.name, f"{broken.text} (day {year.now_ms / DAY_MS:.2f})"))
    finally:
        counts = counts_of(year)
        year.drop()
    findings += gauges.findings
    return Outcome(
        seed=seed,
        length=f"{days:g} virtual days",
        took_s=telling.took_s,
        findings=findings,
        lacking=too_little(counts, WANTED_A_DAY, days),
        counts=counts,
        gauges=gauges,
        repeat=f"./dev soak --virtual-days {days:g} --seed {seed}",
    )


def counts_of(year: Year) -> dict[str, int]:
    happened, load = year.counts, year.load
    return {
        "batches": load.batches,
        "records": load.records,
        "bytes written": load.bytes,
        "appends without an answer": load.unanswered,
        "producers": load.producers,
        "transactions ended": load.transactions,
        **{f"batches of {codec}": count for codec, count in sorted(load.codecs.items())},
        "segments rolled": year.machine.disk.counts["rolled"],
        "segments that left": year.machine.disk.counts["left"],
        "compactions": year.compactions,
        "starts": year.machine.lives,
        "clean stops": happened[kinds.STOP],
        "kills": happened[kinds.KILL],
        "power cuts": happened[kinds.POWER_CUT],
        "directories failed": happened[kinds.DIRECTORY_FAILS],
        "directories brought back": happened["directories brought back"],
        "moves asked for": year.mover.asked,
        "moves ended": year.mover.ended,
        "moves cancelled": year.mover.cancelled,
        "moves that failed or were cancelled": year.mover.failed,
        "moves that the end of a process met": year.mover.met,
        "cleaner deaths": year.machine.fate.deaths,
        "clock jumps": happened[kinds.CLOCK_JUMPS],
        "index files damaged": year.damaged.count,
        "topics made anew": happened[kinds.TOPIC_ANEW],
        "settings changed": happened[kinds.SETTING],
        "records deleted": happened["records deleted"],
        "audits": year.audits,
        "logs read and compared": year.reader.looks,
        "batches read and compared": year.reader.batches,
        "searches by time": year.reader.searches,
        "disk calls": year.machine.disk.operations,
        "events": year.scheduler.steps,
    }
