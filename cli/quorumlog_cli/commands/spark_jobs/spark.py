"""`quorumlog spark`: checks, a shell, loads, mirrors, and what the Spark connector keeps in a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.spark_jobs.spark_doctor import doctor
from quorumlog_cli.commands.spark_jobs.spark_load import load
from quorumlog_cli.commands.spark_jobs.spark_mirror import mirror
from quorumlog_cli.commands.spark_jobs.spark_shell import shell
from quorumlog_cli.commands.spark_jobs.spark_sink import app as sink_app
from quorumlog_cli.commands.transactions.transaction_view import utc_text
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.spark.read.pins import Pin

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Spark: checks, a shell, loads, mirrors, and what streams keep here.",
)
pin_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Where streams that began at latest, or at a time, have begun (option pinId).",
)
app.add_typer(pin_app, name="pin")
app.add_typer(sink_app, name="sink")
app.command()(doctor)
app.command()(shell)
app.command()(load)
app.command()(mirror)

COLUMNS = ("PIN", "TOPICS", "PARTITIONS", "WRITTEN")


@pin_app.command("list")
def list_(
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """List the pins of the cluster: which topics, and when each was written."""
    from quorumlog.spark.read.pins import Pins

    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        pins = Pins(cluster).listed()
    output.show(COLUMNS, [_row(pin) for pin in pins], [_document(pin) for pin in pins])


@pin_app.command()
def delete(
    name: Annotated[str, typer.Argument(metavar="PIN", help="Its pinId.")],
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Delete a pin: the next query with this pinId and without a checkpoint begins anew.

    A query that has finished its first batch does not need its pin any more. Exit code 7 if there is none.
    """
    from quorumlog.spark.read.pins import Pins

    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        if not Pins(cluster).delete(name):
            raise CliError(Exit.NOT_FOUND, f"no pin {name!r}", "quorumlog spark pin list shows what there is")
    if output.is_json():
        output.show_json({"deleted": name})
    else:
        output.say(f"pin {name} is deleted")


def _row(pin: Pin) -> list[Any]:
    offsets = pin.value.get("o", {})
    return [pin.name, ",".join(sorted(offsets)), sum(map(len, offsets.values())), utc_text(pin.written_ms)]


def _document(pin: Pin) -> dict[str, Any]:
    return {"pin": pin.name, "written_ms": pin.written_ms, "offset": pin.value}
