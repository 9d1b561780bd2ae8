"""The page of a night, in Markdown. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from jepsen.nightly.night import verdict_of
from jepsen.nightly.plan import Plan
from jepsen.nightly.state import FOUND, Finding
from jepsen.nightly.work import Work, as_typed


def page(plan: Plan, date: str) -> str:
    """date: of now."""
    state = plan.state
    lines = [
        "# What the nights have found",
        "",
        f"{date}, commit `{state.commit or 'none yet'}`, {state.slices:,} slices: {verdict_of(state.open)}.",
        "",
        "| kind | round | done of this round | of | hours | verdict | what it covers |",
        "|---|---|---|---|---|---|---|",
        *(_row(plan, work) for work in plan.works),
        "",
        *_findings("Findings", state.open),
        *_left(plan),
        *_findings("Said to be fixed", [finding for finding in state.findings if finding.fixed]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _row(plan: Plan, work: Work) -> str:
    progress = plan.state.of(work.name)
    found = [finding for finding in plan.state.open if finding.kind == work.name]
    verdict = verdict_of(found) if progress.all_units else "has not run"
    cells = (
        work.name,
        str(progress.round),
        f"{min(progress.done, work.whole):,}",
        f"{work.whole:,} {work.unit}",
        f"{progress.spent_s / 3600:.2f}",
        verdict,
        work.covers,
    )
    return f"| {' | '.join(cells)} |"


def _findings(title: str, findings: Sequence[Finding]) -> list[str]:
    if not findings:
        return []
    lines = [f"## {title}", ""]
    for finding in findings:
        since = "" if finding.since == finding.commit else f", since `{finding.since}`"
        fixed = f"; fixed at `{finding.fixed}`" if finding.fixed else ""
        verdict = "" if finding.verdict == FOUND else f" {finding.verdict}"
        lines += [
            f"### {finding.number}. {finding.kind}{verdict}",
            "",
            f"At commit `{finding.commit}`{since}, {finding.date}{fixed}. The whole output is in `{finding.output}`.",
            "",
            *(f"    {replay}" for replay in finding.replays),
            "",
            "```",
            *finding.what,
            "```",
            "",
        ]
        if not finding.fixed:
            lines += [f"When it is fixed: `./dev nightly --fixed {finding.number}`.", ""]
    return lines


def _left(plan: Plan) -> list[str]:
    """What the round still wants."""
    unfinished = [work for work in plan.works if plan.left(work)]
    if not unfinished:
        return ["## Left of the round", "", "Nothing: the next night begins another one.", ""]
    return ["## Left of the round", "", *(f"- {left_line(plan, work)}" for work in unfinished), ""]


def left_line(plan: Plan, work: Work) -> str:
    """What is left of a kind, about how long that takes, and its next command."""
    left, progress = plan.left(work), plan.state.of(work.name)
    if not left:
        return f"{work.name}: done, all {work.whole:,} {work.unit} of round {progress.round}"
    time = f", some {progress.all_s / progress.all_units * left / 3600:.1f} hours" if progress.all_units else ""
    command = as_typed(plan.slice_of(work).command)
    return f"{work.name}: {left:,} of {work.whole:,} {work.unit} left{time}; next: `{command}`"
