"""One run of the virtual day: events, samples, what must have happened at least, and the verdict."""

from __future__ import annotations

from collections.abc import Callable

from jepsen.sim.machine.machine import Machine
from jepsen.soak.cluster.day import Day
from jepsen.soak.cluster.sampler import Sampler
from jepsen.soak.cluster.topics import HOUR_MS
from jepsen.soak.gauges import Finding, Gauges, too_little
from jepsen.soak.outcome import Outcome
from jepsen.soak.telling import Telling
from jepsen.soak.year.model import Broken

WANTED_AN_HOUR = {  # so often each must have happened, or the run proves too little
    "records acknowledged": 200,
    "producers": 2,
    "partitions read and compared": 5,
    "starts": 2,
    "kills": 0.6,
    "power cuts": 0.5,
    "clean stops": 0.5,
    "pauses": 0.4,
    "topics made anew": 0.4,
    "settings changed and put back": 0.8,
    "moves asked for": 0.8,
    "metadata records": 20,
}


def run_day(seed: int, hours: float, say: Callable[[str], None] = lambda _: None) -> Outcome:
    """say: is given a line now and then."""
    telling = Telling(say)
    gauges = Gauges("hours")
    sampler = Sampler(gauges)

    def on_sample(day: Day) -> None:
        sampler.sample(day.now_ms / HOUR_MS, day.cluster, day.parts, day.now_ms)
        telling.tell(f"hour {day.now_ms / HOUR_MS:.1f} of {hours:g}")

    def on_start(day: Day, machine: Machine, calls: int, took_ms: int) -> None:
        sampler.started(day.now_ms / HOUR_MS, machine, calls, took_ms)

    day = Day(seed, on_sample, on_start)
    findings: list[Finding] = []
    try:
        day.begin()
        day.run(hours)
    except Broken as broken:
        findings.append(Finding(broken.name, f"{broken.text} (hour {day.now_ms / HOUR_MS:.2f})"))
    finally:
        counts = counts_of(day)
        day.drop()
    findings += gauges.findings
    return Outcome(
        seed=seed,
        length=f"{hours:g} virtual hours",
        took_s=telling.took_s,
        findings=findings,
        lacking=too_little(counts, WANTED_AN_HOUR, hours),
        counts=counts,
        gauges=gauges,
        repeat=f"./dev soak --cluster --virtual-hours {hours:g} --seed {seed}",
    )


def counts_of(day: Day) -> dict[str, int]:
    clients = day.clients
    return {
        "records acknowledged": clients.acked,
        "records without an answer": clients.unanswered,
        "producers": clients.producers,
        "partitions read and compared": clients.reads,
        "records read and compared": clients.records_read,
        **{name: day.counts[name] for name in sorted(day.counts)},
        "metadata records": day.cluster.image.offset,
        "disk calls": sum(machine.disk.operations for machine in day.cluster.machines.values()),
        "events": day.scheduler.steps,
    }
