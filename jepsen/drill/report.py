"""The report of a drill, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jepsen.drill.healthy import Health
from jepsen.drill.run import WITHIN_S, Outcome


def report(
    seed: int,
    watched: Sequence[str],
    outcomes: Sequence[Outcome],
    health: Health | None,
    done: Counter[str],
    busy: str,
) -> str:
    lines = [f"# Drill, seed {seed}", ""]
    if outcomes:
        lines += [
            f"Seconds from the fault to its name (within {WITHIN_S:.0f}), and from its end to silence.",
            "",
            "| fault | " + " | ".join(watched) + " | besides |",
            "|---|" + "---|" * (len(watched) + 1),
        ]
        lines += [_row(one, len(watched)) for one in outcomes]
        lines += ["", f"{sum(not one.failures() for one in outcomes)} of {len(outcomes)} faults as they should be."]
    if health is not None:
        work = ", ".join(f"{count} of {name}" for name, count in health.done.items())
        looks = ", ".join(f"{name} {count}" for name, count in health.looks.items())
        lines += ["", f"{health.minutes:.1f} healthy minutes: {work}; looks: {looks}."]
        lines += [f"- of the machine: {name} in {count} looks" for name, count in sorted(health.of_machine.items())]
        lines += [f"- first: {text}" for text in health.first]
    lines += ["", f"The machine's load was {busy}."]
    failed = failures(outcomes, health)
    lines += ["", "Load: " + ", ".join(f"{name} {count}" for name, count in sorted(done.items())) + "."]
    lines += ["", "## Failures", "", *(f"- {text}" for text in failed)] if failed else ["", "No failures."]
    return "\n".join(lines) + "\n"


def failures(outcomes: Sequence[Outcome], health: Health | None) -> list[str]:
    return [text for one in outcomes for text in one.failures()] + ([] if health is None else health.failures())


def _row(one: Outcome, watchers: int) -> str:
    besides = [one.trouble] if one.trouble else []
    besides += [f"{verdict.watcher}: {', '.join(verdict.troubles[:2])}" for verdict in one.verdicts if verdict.troubles]
    besides += [f"before: {', '.join(one.noise)}"] if one.noise else []
    besides += [one.expected.no_alert] if one.expected is not None and one.expected.no_alert else []
    cells = [verdict.times() for verdict in one.verdicts] or ["not put"] * watchers
    return f"| {one.fault.name} | " + " | ".join(cells) + f" | {'; '.join(besides)} |".replace("\n", " ")
