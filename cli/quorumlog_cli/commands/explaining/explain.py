"""`quorumlog explain SUBJECT`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.commands.explaining.reading import OVER_S, OverOption, read, say_cuts
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.explaining.facts import Facts
    from quorumlog.explaining.finding import Evidence, Finding
    from quorumlog.explaining.judging import Explanation

app = typer.Typer(add_completion=False)
MOST_OF_A_CAUSE = 2
_PARTS = ("directories", "quorum", "events")
_MORE = {  # parts that a sort of subject needs besides
    "group": ("groups",),
    "transaction": ("transactions",),
    "partition": ("transactions", "ends"),
    "topic": ("transactions", "ends"),
    "client": ("quotas",),
}


def parts_of(subject: str | None) -> tuple[str, ...]:
    """What is read for a subject; None: all. Of a name without its sort, all that may have such a name."""
    if subject is None:
        return (*_PARTS, "groups", "transactions", "ends", "quotas")
    sort, _, name = subject.partition("/")
    if name or subject == "quorum":  # a quorum that is lost should be told soon
        return (*_PARTS, *_MORE.get(sort, ()))
    return (*_PARTS, "groups", "transactions")


@app.command()
def explain(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUBJECT]",
            help="partition orders-4, topic orders, broker 3, group billing, transaction ID or quorum; the first word "
            "may be left out where the name means one thing. Also as one word: group/billing. None: all that is wrong.",
            show_default=False,
        ),
    ] = None,
    second: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False)] = None,
    over_s: OverOption = OVER_S,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Say in what state it is, since which event and record, what comes next, and what to do.

    Each sentence comes from something that was read; -o json names its source. An Apache Kafka keeps no events, so
    there it is not told since when something is so. Exit code 5: something is wrong with it; 7: there is no such thing.
    """
    from quorumlog.explaining.finding import Severity
    from quorumlog.explaining.judging import SORTS, UnknownSubject, judge, subject_of, worst
    from quorumlog.explaining.judging import explain as explained
    from quorumlog.explaining.thresholds import Thresholds

    output.use(output_format)
    if second is not None:
        if subject not in SORTS:
            raise CliError(Exit.USAGE, f"{subject!r} is no sort of subject; write one of {', '.join(SORTS)} first")
        subject = f"{subject}/{second}"
    facts = facts_of(subject, servers, profile, options, over_s)
    if subject is None and not facts.unreachable:
        found = _all(facts, judge(facts, Thresholds()))
    elif subject is None or facts.unreachable:
        found = explained("cluster", facts, judge(facts, Thresholds()))
    else:
        try:
            found = explained(subject_of(subject, facts), facts, judge(facts, Thresholds()))
        except UnknownSubject as error:
            raise CliError(Exit.NOT_FOUND, str(error)) from error
    if output.is_json():
        output.show_json({**found.document(), "unknown": dict(facts.unknown)})
    else:
        _show(found, facts)
        if found.findings:
            say_cuts(servers, profile, options)
    if facts.unreachable:
        raise typer.Exit(Exit.UNREACHABLE)
    if worst(found.findings) is not Severity.NOTICE:
        raise typer.Exit(Exit.UNHEALTHY)


def facts_of(
    subject: str | None, servers: str | None, profile: str | None, options: list[str] | None, over_s: float
) -> Facts:
    """What is read to explain a subject. Raises CliError as `read` does."""
    sort, _, name = (subject or "").partition("/")
    groups = [name] if sort == "group" else None
    return read(servers, profile, options, parts=parts_of(subject), groups=groups, over_s=over_s)


def _all(facts: Facts, findings: list[Finding]) -> Explanation:
    from quorumlog.explaining.judging import Explanation

    state = findings[0].state if findings else f"nothing is wrong; looked at {', '.join(facts.asked)}"
    return Explanation(subject="cluster", state=state, read=(), findings=tuple(findings))


def _show(found: Explanation, facts: Facts) -> None:
    for line in lines_of(found):
        print(output.on_one_line(line))
    for text in unknown_of(facts):
        output.say(text)


def lines_of(found: Explanation) -> Iterator[str]:
    """The state, and of each finding why, what comes next, and what to do; names in them are as clients chose them."""
    if not found.findings:
        yield found.state
    told: dict[str, int] = {}
    for finding in found.findings:
        told[finding.cause] = told.get(finding.cause, 0) + 1
        if told[finding.cause] <= MOST_OF_A_CAUSE:
            yield from _lines_of_finding(finding)
    for cause, count in told.items():
        if count > MOST_OF_A_CAUSE:
            yield f"and {count - MOST_OF_A_CAUSE} more like it: {cause}"


def unknown_of(facts: Facts) -> list[str]:
    return [f"not known: {part} ({why})" for part, why in facts.unknown.items()]


def _lines_of_finding(finding: Finding) -> Iterator[str]:
    yield finding.state
    for number, one in enumerate(finding.why):
        yield f"  {'why ' if number == 0 else '    '}  {line_of(one)}"
    yield f"  next  {finding.next}"
    yield f"  do    {finding.do}"


def line_of(one: Evidence) -> str:
    """The time in UTC of an event; `now` of what was read just now."""
    at = datetime.fromtimestamp(one.at_ms / 1000, UTC).strftime("%m-%d %H:%M:%S.%f")[:-3] if one.is_event else "now"
    where = f"metadata @{one.offset} {one.record}" if one.offset >= 0 else one.source
    return f"{at:<18}  {one.text}   [{where}]"
