"""`quorumlog spark doctor`: whether Spark can read from a cluster on this machine, and what to do if it cannot."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.spark_options import spark_options
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog_cli.profiles.profile import Target
    from quorumlog_cli.spark_checks import Finding

COLUMNS = ("CHECK", "STATE", "FOUND")
RoundTripOption = Annotated[
    bool,
    typer.Option(
        "--round-trip/--no-round-trip",
        help="Write 1,000 rows into a topic of its own, read them with Spark, delete the topic.",
    ),
]


def doctor(
    round_trip: RoundTripOption = True,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Check Java, Python, packages, Spark's session, and a round trip of 1,000 rows through the cluster.

    Exit code 6 if a check failed. What to do stands below the table.
    """
    output.use(output_format)
    target = find_target(servers, profile, options) if round_trip else None
    with tempfile.TemporaryDirectory(prefix="quorumlog-doctor-") as folder:
        found = list(_findings(target, Path(folder) / "spark.log"))
    output.show(COLUMNS, [(one.check, one.state, one.found) for one in found], [asdict(one) for one in found])
    for one in found:
        if one.advice and not output.is_json():
            output.say(f"hint   {one.check}: {one.advice}")
    failed = [one.check for one in found if one.state == "failed"]
    if failed:
        raise CliError(Exit.PRECONDITION, f"Spark cannot read from a cluster here: {', '.join(failed)}")


def _findings(target: Target | None, log: Path) -> Iterator[Finding]:
    """target: of the round trip; None: without it."""
    from quorumlog.client.options import ConsumerOptions
    from quorumlog_cli.spark_checks import Finding, State, of_session, of_this_machine, round_trip
    from quorumlog_cli.spark_session import session

    options = {} if target is None else spark_options(target, ConsumerOptions)
    _progress("Python, Java and packages")
    found = list(of_this_machine(os.environ))
    yield from found
    if any(one.state is State.FAILED and one.check in ("java", "pyspark") for one in found):
        yield Finding("session", State.SKIPPED, "Spark cannot start")
        return
    _progress("Spark's session, some seconds")
    with session(log, "quorumlog spark doctor", "local[2]") as spark:
        yield from of_session(spark)
        if target is None:
            yield Finding("round trip", State.SKIPPED, "--no-round-trip")
            return
        _progress(f"{target.bootstrap_servers}: a round trip")
        try:
            with connected(target) as cluster:
                yield round_trip(spark, cluster, options)
        except CliError as error:
            yield Finding("round trip", State.FAILED, error.message, error.hint)


def _progress(text: str) -> None:
    if not output.is_json():
        output.say(f"checks {text} …")
