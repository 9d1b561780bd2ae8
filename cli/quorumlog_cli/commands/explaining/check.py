"""`quorumlog check`: the causes that are found now, as Nagios, Prometheus or people read them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.explaining.reading import OVER_S, OverOption, read, say_cuts
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorumlog.explaining.facts import Facts
    from quorumlog.explaining.finding import Finding

app = typer.Typer(add_completion=False)
OK, WARNING, CRITICAL, UNKNOWN = 0, 1, 2, 3
WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
MOST_TOLD = 5  # subjects of a cause in a line


class Area(StrEnum):
    ALL = "all"
    PERF = "perf"
    QUORUM = "quorum"
    LAG = "lag"
    DISK = "disk"
    SEGMENT = "segment"


class Shape(StrEnum):
    NAGIOS = "nagios"
    JSON = "json"
    PROMETHEUS = "prometheus"


_PARTS = {  # what each area reads
    Area.ALL: ("directories", "quorum", "groups", "transactions", "quotas", "ends", "events"),
    Area.PERF: ("transactions", "quotas", "ends", "events"),
    Area.QUORUM: ("quorum", "events"),
    Area.LAG: ("groups", "events"),
    Area.DISK: ("directories", "events"),
    Area.SEGMENT: ("directories", "events"),
}


@app.command()
def check(
    area: Annotated[Area, typer.Argument(help="What to look at.")] = Area.ALL,
    shape: Annotated[Shape, typer.Option("--format", help="Of the answer.")] = Shape.NAGIOS,
    free_percent: Annotated[float, typer.Option("--free-percent", min=0, help="Less is free in a directory.")] = 15.0,
    lag: Annotated[int, typer.Option("--lag", min=0, help="A group is more records behind.")] = 10_000,
    rebalance_s: Annotated[float, typer.Option("--rebalance", min=0, help="Seconds of a rebalance.")] = 15.0,
    transaction_s: Annotated[
        float, typer.Option("--transaction", min=0, help="Seconds that a transaction is open, beside its time-out.")
    ] = 300.0,
    certificate_days: Annotated[int, typer.Option("--certificate-days", min=0, help="Days that are left.")] = 14,
    voter_lag: Annotated[int, typer.Option("--voter-lag", min=0, help="Records that a voter is behind.")] = 1_000,
    stall_ms: Annotated[int, typer.Option("--stall-ms", min=0, help="A node did nothing else for longer.")] = 1_000,
    over_s: OverOption = OVER_S,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Look for every cause that `quorumlog explain` knows. Exit codes are Nagios': 0 OK, 1 WARNING, 2 CRITICAL, and 3
    UNKNOWN where something could not be read and nothing else was found, or where whoever asks may not.

    quorum: leader, majority, voters. segment: partitions, replicas, brokers, certificates. disk: directories. lag:
    groups. perf: transactions, quotas, hot partitions, stalls. Thresholds are those of the alerts.
    """
    from quorumlog.client.errors import AuthenticationFailed
    from quorumlog.explaining.judging import judge
    from quorumlog.explaining.thresholds import Thresholds

    output.use(Format.JSON if shape is Shape.JSON else output_format)
    limits = Thresholds(
        free_percent=free_percent,
        lag=lag,
        rebalance_ms=round(rebalance_s * 1_000),
        transaction_ms=round(transaction_s * 1_000),
        certificate_days=certificate_days,
        voter_lag=voter_lag,
        stall_ms=stall_ms,
    )
    try:
        facts = read(servers, profile, options, parts=_PARTS[area], over_s=over_s)
    except (CliError, AuthenticationFailed) as error:
        output.complain(f"QUORUMLOG {area.value.upper()} {WORDS[UNKNOWN]} - {error}")
        raise typer.Exit(UNKNOWN) from error
    areas = () if area is Area.ALL or facts.unreachable else (area.value,)
    findings = judge(facts, limits, areas)
    code = code_of(facts, findings)
    if output.is_json():
        output.show_json(document_of(area, code, facts, findings))
    elif shape is Shape.PROMETHEUS:
        print(prometheus_of(area, code, findings), end="")
    else:
        print(nagios_of(area, code, facts, findings))
        if code != OK:
            say_cuts(servers, profile, options)
    raise typer.Exit(code)


def code_of(facts: Facts, findings: Sequence[Finding]) -> int:
    """A finding decides; without one, what could not be read. That there are no events is no fault of a cluster."""
    from quorumlog.explaining.judging import worst

    found = int(worst(findings))
    missing = [part for part in facts.unknown if part != "events"]
    return UNKNOWN if found == OK and missing else found


def figures_of(facts: Facts, findings: Sequence[Finding]) -> dict[str, int]:
    """What a monitor draws. Lags are those that were read last."""
    partitions = facts.partitions
    found = {
        "findings": sum(one.severity > 0 for one in findings),
        "partitions": len(partitions),
        "offline": sum(one.leader < 0 for one in partitions),
        "under_replicated": sum(one.leader >= 0 and one.is_under_replicated for one in partitions),
        "brokers_fenced": sum(one.fenced for one in facts.brokers),
        "groups": len(facts.groups),
        "lag": sum(one.samples[-1].total for one in facts.groups if one.samples),
    }
    free = [100 * one.usable // one.total for one in facts.directories if one.total > 0 and one.usable >= 0]
    return found | ({"least_free_percent": min(free)} if free else {})


def nagios_of(area: Area, code: int, facts: Facts, findings: Sequence[Finding]) -> str:
    """One line with the figures behind `|`, then a line for each cause, as Nagios' guidelines have it."""
    told = [one for one in findings if one.severity > 0]
    if told:
        first = f"{told[0].state}" + (f" (and {len(told) - 1} more)" if len(told) > 1 else "")
    elif code == UNKNOWN:
        first = "not everything could be read: " + "; ".join(f"{part}: {why}" for part, why in facts.unknown.items())
    else:
        first = f"looked at {', '.join(facts.asked)}" if facts.asked else "nothing to look at"
    figures = " ".join(f"{name}={value}" for name, value in figures_of(facts, findings).items())
    lines = [f"QUORUMLOG {area.value.upper()} {WORDS[code]} - {first.replace('|', '/')} | {figures}"]
    by_cause: dict[str, list[Finding]] = {}
    for one in findings:
        by_cause.setdefault(one.cause, []).append(one)
    for cause, own in by_cause.items():
        subjects = list(dict.fromkeys(one.subject for one in own))
        names = ", ".join(subjects[:MOST_TOLD])
        more = f" and {len(subjects) - MOST_TOLD} more" if len(subjects) > MOST_TOLD else ""
        word = WORDS[own[0].severity] if own[0].severity else "NOTICE"
        lines.append(f"{word} {cause}: {names}{more}; do: {own[0].do}".replace("|", "/"))
    return "\n".join(output.on_one_line(line) for line in lines)


def prometheus_of(area: Area, code: int, findings: Sequence[Finding]) -> str:
    """For the textfile collector. Subjects are no labels: clients choose names."""
    counts: dict[tuple[str, str], int] = {}
    for one in findings:
        key = (one.cause, one.severity.name.lower())
        counts[key] = counts.get(key, 0) + 1
    lines = [
        "# HELP quorumlog_check_status 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.",
        "# TYPE quorumlog_check_status gauge",
        f'quorumlog_check_status{{area="{area.value}"}} {code}',
        "# HELP quorumlog_check_findings Subjects for which a cause was found.",
        "# TYPE quorumlog_check_findings gauge",
        *(
            f'quorumlog_check_findings{{area="{area.value}",cause="{cause}",severity="{severity}"}} {count}'
            for (cause, severity), count in sorted(counts.items())
        ),
    ]
    return "\n".join(lines) + "\n"


def document_of(area: Area, code: int, facts: Facts, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "area": area.value,
        "status": WORDS[code],
        "code": code,
        "looked_at": list(facts.asked),
        "unknown": dict(facts.unknown),
        "figures": figures_of(facts, findings),
        "findings": [one.document() for one in findings],
    }
