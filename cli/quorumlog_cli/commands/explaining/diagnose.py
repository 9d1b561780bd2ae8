"""`quorumlog diagnose`: one file with what others need to find a fault."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.explaining.reading import ASK_TIMEOUT_MS, now_ms, side_by_side, wall_ms
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.places import time_ms

if TYPE_CHECKING:
    from quorumlog.testing.nodes import LocalNodes
    from quorumlog_cli.diagnosing.bundle import Bundle
    from quorumlog_cli.profiles.profile import Target

app = typer.Typer(add_completion=False)
BETWEEN_S = 2.0  # between the two looks at metrics


@app.command()
def diagnose(
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="A new file. Default: quorumlog-TIME.tar.zst here.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All topics and groups, and whole logs; else 200 and the last 2,000 lines.")
    ] = False,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Logs and events of 30m, 2h, PT1H ago, a date, and later.")
    ] = "1h",
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Local nodes, also if they are silent. Default: the target's."),
    ] = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Write one file, which only you can read, with what helps others to find a fault.

    Versions, settings with their origin, brokers, quorum, topics, groups, transactions, what `check` finds, events; of
    local nodes also logs, metrics twice, stacks, descriptors, disks and limits. No passwords, keys, tokens, and no
    contents of records; names of topics, groups, clients and hosts are in it. Exit code 9: parts are missing, which the
    manifest names.
    """
    from quorumlog_cli.diagnosing.bundle import Bundle

    output.use(output_format)
    since_ms = time_ms(since, wall_ms(), "--since")
    target = find_target(servers, profile, options)
    path = to or Path(f"quorumlog-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.tar.zst")
    output.say("reading the cluster and its local nodes, twice")
    about = {"made_at": datetime.now(UTC).isoformat(), "since": since, "everything": everything, **_versions()}
    try:
        bundle = Bundle(path, about)
    except FileExistsError:
        raise CliError(Exit.PRECONDITION, f"{path} exists", "name another file with --to") from None
    except OSError as error:
        raise CliError(Exit.FAILED, f"{path} cannot be written: {error.strerror}") from error
    with bundle:
        _fill(bundle, target, _local(target, data), everything=everything, since_ms=since_ms)
    summary = {"file": str(path), "bytes": path.stat().st_size, **bundle.summary}
    output.tell(f"wrote {path}, {summary['bytes']} bytes, {len(summary['parts'])} parts", summary)
    for name, why in summary["missing"].items():
        output.say(f"missing: {name} ({why})")
    if summary["missing"]:
        raise typer.Exit(Exit.PARTIAL)


def _fill(bundle: Bundle, target: Target, nodes: LocalNodes | None, *, everything: bool, since_ms: int) -> None:
    from quorumlog_cli.diagnosing.cluster_parts import add_cluster, add_findings
    from quorumlog_cli.diagnosing.node_parts import add_nodes, machine

    bundle.add_json("machine.json", machine)
    try:
        with connected(target, default_api_timeout_ms=ASK_TIMEOUT_MS) as cluster:
            add_cluster(bundle, cluster.admin, everything=everything, since_ms=since_ms)
            add_findings(bundle, *_judged(cluster.admin, is_local=nodes is not None))
    except Exception as error:  # whatever it is: the nodes' files are worth having without it
        bundle.missing("cluster", f"{type(error).__name__}: {error}")
    if nodes is not None:
        add_nodes(bundle, nodes, everything=everything, since_ms=since_ms, between_s=BETWEEN_S, sleep=time.sleep)


def _judged(admin: Any, *, is_local: bool) -> tuple[Any, Any]:
    from quorumlog.explaining.judging import judge
    from quorumlog.explaining.reading import read_facts
    from quorumlog.explaining.thresholds import Thresholds

    facts = read_facts(
        admin,
        wall_ms=wall_ms,
        sleep_s=time.sleep,
        over_s=BETWEEN_S,
        is_local=is_local,
        begin=side_by_side,
        now_ms=now_ms,
    )
    return facts, judge(facts, Thresholds())


def _local(target: Target, data: Path | None) -> LocalNodes | None:
    from quorumlog.testing.layout import has_cluster
    from quorumlog.testing.nodes import LocalNodes

    found = data or target.data_dir
    return LocalNodes.open(found) if found is not None and has_cluster(found) else None


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    names = ("quorumlog", "grpcio", "protobuf", "kio", "zstandard", "cryptography")
    return {f"{name}_version": version(name) for name in names}
