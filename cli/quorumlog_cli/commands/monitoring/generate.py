"""`quorumlog generate`: dashboards for Grafana, rules and a configuration for Prometheus."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Make dashboards for Grafana and rules for Prometheus."
)
ToOption = Annotated[
    Path | None, typer.Option("--to", metavar="DIR", help="Write the files there, over those of before.")
]


class Dash(StrEnum):
    OVERVIEW = "overview"
    BROKERS = "brokers"
    TOPICS = "topics"
    GROUPS = "groups"
    QUORUM = "quorum"
    REQUESTS = "requests"


@app.command()
def grafana(
    name: Annotated[Dash | None, typer.Argument(help="Of one dashboard. Default: all of them with --to.")] = None,
    to: ToOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Print a dashboard as Grafana imports it, the overview by default, or write each into a file of its own.

    A cluster is a job of Prometheus: the dashboards ask which. Every series of docs/metrics.md is in one of them.
    """
    from quorumlog_server.monitoring.dashboards import dashboards
    from quorumlog_server.monitoring.grafana import document_of

    output.use(output_format)
    made = {one.name: document_of(one) for one in dashboards()}
    if to is None:
        output.show_json(made[name or Dash.OVERVIEW])
        return
    chosen = [name.value] if name else list(made)
    _write(to, {f"quorumlog-{one}.json": f"{json.dumps(made[one], indent=2)}\n" for one in chosen})


@app.command()
def alerts(
    to: ToOption = None,
    prometheus: Annotated[
        bool,
        typer.Option(
            "--prometheus", help="A configuration that scrapes the cluster's nodes and loads the rules; with --to both."
        ),
    ] = False,
    job: Annotated[str, typer.Option("--job", help="What Prometheus calls the cluster.")] = "quorumlog",
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Print the rules of alerts as Prometheus loads them. Thresholds are those of `quorumlog check`.

    Only --prometheus asks the cluster. A broker tells its metrics.port; a node that is only a controller is not asked
    by this protocol, unless it is a local one. -o json: the rules as a list, or the nodes with --prometheus.
    """
    from quorumlog.explaining.thresholds import Thresholds
    from quorumlog_server.monitoring import alerts as rules_file
    from quorumlog_server.monitoring.rules import rules_of

    output.use(output_format)
    rules = rules_of(Thresholds())
    files = {rules_file.FILE: rules_file.alerts_file(rules)}
    document: Any = [rules_file.document_of(one) for one in rules]
    if prometheus:
        from quorumlog_cli.commands.monitoring.http_ports import find_ports
        from quorumlog_server.monitoring import scraping

        found = find_ports(servers, profile, options)
        if not found.targets:
            why = "; ".join(found.missing) or "the cluster has no nodes"
            raise CliError(Exit.PRECONDITION, f"there is nothing to scrape: {why}", "set metrics.port of each node")
        files |= {scraping.FILE: scraping.scrape_file(found.targets, job=job, missing=found.missing)}
        document = {
            "job": job,
            "nodes": [{"node_id": one.node_id, "address": one.address, "tls": one.tls} for one in found.targets],
            "missing": list(found.missing),
        }
    if to is not None:
        _write(to, files)
    elif output.is_json():
        output.show_json(document)
    else:
        print(list(files.values())[-1], end="")


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Each whole or not at all. Raises CliError."""
    from quorumlog_cli.local.whole_file import write_whole

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_whole(folder / name, text)
    except OSError as error:
        raise CliError(Exit.FAILED, f"{folder} cannot be written: {error.strerror}") from error
    paths = [str(folder / name) for name in files]
    output.tell("\n".join(f"wrote {path}" for path in paths), {"written": paths})
