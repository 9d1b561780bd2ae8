"""`quorumlog spark mirror`: topics, settings and groups of a cluster into another one, as a query of Spark."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.spark_jobs.spark_load import spark_for
from quorumlog_cli.connecting import connect
from quorumlog_cli.connecting.connect import find_target
from quorumlog_cli.profiles.client_security import with_secrets
from quorumlog_cli.spark_options import spark_options
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.spark.mirror.groups import GroupsDone
    from quorumlog.spark.mirror.job import BatchDone, Mirror, Request
    from quorumlog_cli.profiles.profile import Target

APP = "quorumlog spark mirror"
TOLD_TOPICS = 5  # of a line


class NamesChoice(StrEnum):
    PREFIXED = "prefixed"
    SAME = "same"


class Delivery(StrEnum):
    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True)
class End:
    """One end of the mirror, as the command line names it."""

    alias: str
    target: Target


def mirror(
    source: Annotated[
        str,
        typer.Option("--from", metavar="[ALIAS=]HOST:PORT,…|PROFILE", help="Cluster whose records are copied."),
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="[ALIAS=]HOST:PORT,…|PROFILE", help="Cluster that gets the copies.")
    ],
    topics: Annotated[
        str, typer.Option(metavar="PATTERN,…", help="Regular expressions of whole names; new topics, too.")
    ],
    checkpoint: Annotated[
        str, typer.Option(metavar="DIR|ADDRESS", help="A folder of this mirror's own, empty at first: how far it is.")
    ],
    names: Annotated[
        NamesChoice, typer.Option(help="On the target: ALIAS.TOPIC, or as on the source.")
    ] = NamesChoice.PREFIXED,
    groups: Annotated[
        str, typer.Option(metavar="PATTERN", help="Groups whose offsets are set on the target; '' for none.")
    ] = ".*",
    delivery: Annotated[
        Delivery, typer.Option(help="at-least-once repeats what a death leaves undone.")
    ] = Delivery.EXACTLY_ONCE,
    once: Annotated[bool, typer.Option("--once", help="Copy what is there now, then end.")] = False,
    every: Annotated[str, typer.Option(metavar="TIME", help="Between the beginnings of two batches.")] = "1s",
    groups_every: Annotated[
        str, typer.Option(metavar="TIME", help="Between two looks at groups and settings.")
    ] = "10s",
    max_batch: Annotated[int, typer.Option(min=1, metavar="RECORDS", help="Of one batch, at most.")] = 1_000_000,
    skip_lost: Annotated[
        bool, typer.Option("--skip-lost", help="Leave out what retention took before it was copied.")
    ] = False,
    restore: Annotated[
        str, typer.Option(metavar="CLUSTER-ID", help="A lost cluster whose records come home to the target.")
    ] = "",
    name: Annotated[str, typer.Option(metavar="NAME", help="Of this mirror, in `spark sink list`.")] = "mirror",
    master: Annotated[
        str, typer.Option(metavar="URL", help="Spark's, as spark://host:7077; spark-submit's goes before it.")
    ] = "local[*]",
    options: Annotated[
        list[str] | None, typer.Option("-X", metavar="KEY=VALUE", help="A client option, for both; may be repeated.")
    ] = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Mirror topics with their records, settings and groups into another cluster, until Ctrl-C.

    It may be killed at any time, and goes on where it was. A mirror back, from --to to --from, brings home what was
    written during a fail-over, and no record twice.

    Exit code 6 if both are one cluster, or one of them was made anew since the mirror began.
    """
    output.use(output_format)
    ends = _end(source, "source", options), _end(to, "target", options)
    request = _request(
        ends, topics=topics, checkpoint=checkpoint, names=names, delivery=delivery, once=once,
        every=every, groups_every=groups_every, max_batch=max_batch, skip_lost=skip_lost, restore=restore, name=name,
    )  # fmt: skip
    for end in ends:
        connect.reach(end.target)
    with spark_for(APP, master) as spark, _mirror(request, ends, groups) as made, _ends_in_order(made):
        _run(made, spark)
    output.say("the mirror has ended")


def _end(text: str, alias: str, options: list[str] | None) -> End:
    """alias: of servers without one. Raises CliError, ConfigError."""
    from quorumlog.spark.mirror.topics import check_alias

    given, equals, servers = text.partition("=")
    if equals:
        end = End(given, find_target(servers, None, options))
    elif ":" in text:
        end = End(alias, find_target(text, None, options))
    else:
        end = End(text, find_target(None, text, options))
    check_alias(end.alias)
    return end


def _request(ends: tuple[End, End], *, names: NamesChoice, delivery: Delivery, **given: Any) -> Request:
    """Raises ConfigError."""
    from quorumlog.client.options import ConsumerOptions, ProducerOptions
    from quorumlog.spark.mirror.job import Request
    from quorumlog.spark.mirror.topics import Names, topic_pattern
    from quorumlog.spark.read.options import parse_duration_ms

    times = {one: parse_duration_ms(f"--{one.replace('_', '-')}", given[one]) for one in ("every", "groups_every")}
    topic_pattern(given["topics"])
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", given["name"]):
        raise CliError(Exit.USAGE, f"--name {given['name']!r}: it is 1 to 100 letters, digits, '.', '_' and '-'")
    return Request(
        topics=given["topics"], checkpoint=_checkpoint(given["checkpoint"]), names=Names(names.value),
        source=spark_options(ends[0].target, ConsumerOptions), target=spark_options(ends[1].target, ProducerOptions),
        name=given["name"], delivery=delivery.value, restored=given["restore"], once=given["once"],
        every_ms=times["every"], groups_every_ms=max(times["groups_every"], 1), max_batch=given["max_batch"],
        skip_lost=given["skip_lost"],
    )  # fmt: skip


def _checkpoint(given: str) -> str:
    """A relative folder is this process's, and not Spark's."""
    from quorumlog.spark.mirror.checkpoint import is_address

    return given if is_address(given) else os.path.abspath(given)


@contextmanager
def _mirror(request: Request, ends: tuple[End, End], groups: str) -> Iterator[Mirror]:
    from quorumlog.client.blocking import Cluster
    from quorumlog.spark.mirror.groups import GroupMirror, group_pattern
    from quorumlog.spark.mirror.job import Mirror, Told
    from quorumlog.spark.mirror.sides import MirrorSide

    pattern = group_pattern(groups)
    one, other = (
        Cluster(end.target.bootstrap_servers, **{"client_id": "quorumlog-mirror", **_common(end.target)})
        for end in ends
    )
    with one, other:
        source, target = MirrorSide(ends[0].alias, one), MirrorSide(ends[1].alias, other)
        told = Told(_tell_batch, _tell_groups, _warn)
        yield Mirror(request, source, target, GroupMirror(source, target, pattern, _warn), told)


def _common(target: Target) -> Mapping[str, Any]:
    return with_secrets(connect.common_options(target.options))


def _run(made: Mirror, spark: Any) -> None:
    """Raises CliError(FAILED) with what Spark's query says of an error that is not the mirror's own."""
    from pyspark.errors import PySparkException

    from quorumlog.spark.mirror.job import why_failed

    try:
        made.run(spark)
    except PySparkException as error:
        raise CliError(
            Exit.FAILED, f"the mirror's query has failed: {why_failed(str(error))}",
            "the same command goes on where it was; -o json tells what it had done",
        ) from error  # fmt: skip


@contextmanager
def _ends_in_order(made: Mirror) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM lets the batch that is under way end; a second one ends the mirror at once."""

    def note(number: int, frame: Any) -> None:
        made.stopping.set()
        for one, handler in before.items():
            signal.signal(one, handler)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show_line(document: dict[str, Any]) -> None:
    """At once, also into a pipe: a mirror may say nothing more for hours."""
    output.show_json_line(document)
    sys.stdout.flush()


def _tell_batch(done: BatchDone) -> None:
    if output.is_json():
        _show_line({"event": "batch", "batch": done.batch, "records": done.rows, "lag": dict(done.lag)})
        return
    behind = sorted(((lag, topic) for topic, lag in done.lag.items() if lag), reverse=True)
    text = ", ".join(f"{topic} by {lag:,}" for lag, topic in behind[:TOLD_TOPICS])
    more = f" and {len(behind) - TOLD_TOPICS} more topics" if len(behind) > TOLD_TOPICS else ""
    output.say(
        f"batch {done.batch}: {done.rows:,} records; " + (f"behind: {text}{more}" if text else "nothing is behind")
    )


def _tell_groups(done: GroupsDone) -> None:
    if output.is_json():
        if done.set or done.busy:
            _show_line({"event": "groups", "set": list(done.set), "busy": list(done.busy)})
    elif done.set:
        output.say(f"groups set on the target: {', '.join(done.set)}")


def _warn(text: str) -> None:
    if output.is_json():
        _show_line({"event": "warning", "text": text})
    else:
        output.say(f"note   {text}")
