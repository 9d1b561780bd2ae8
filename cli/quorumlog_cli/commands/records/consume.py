"""`quorumlog consume TOPIC...`: prints records on stdout, with kcat's option letters; alone or as a group's member."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.records.options import (
    ExitOption,
    FromBeginningOption,
    GroupOption,
    JsonLinesOption,
    KeyDecoderOption,
    KeyOption,
    PartitionsOption,
    PlaceOption,
    RecordFormatOption,
    SinceOption,
    TailOption,
    UntilOption,
    ValueDecoderOption,
    WhereOption,
)
from quorumlog_cli.connecting.connect import (
    ConfigOption,
    ProfileOption,
    ServersOption,
    common_options,
    connected,
    find_target,
)
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.first_interrupt import FirstInterrupt
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.places import Range, parse_places
from quorumlog_cli.terminal.reader_gone import check_reader
from quorumlog_cli.terminal.records_text import DEFAULT_FORMAT, BadFormat, compile_format, to_json_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorumlog.client.blocking_consumer import Consumer
    from quorumlog.client.consumer import ConsumedRecord
    from quorumlog_cli.commands.records.schemas import Decoding

    Render = Callable[[ConsumedRecord], bytes | None]
    """None: the record is not wanted."""

app = typer.Typer(add_completion=False)
POLL_MS = 500


@app.command()
def consume(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC")],
    group: GroupOption = None,
    offset: PlaceOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    tail: TailOption = None,
    key: KeyOption = None,
    where: WhereOption = None,
    exit_at_end: ExitOption = False,
    count: Annotated[int | None, typer.Option("-n", "--max-messages", min=1, help="Stop after N records.")] = None,
    partition: PartitionsOption = None,
    record_format: RecordFormatOption = DEFAULT_FORMAT,
    json_lines: JsonLinesOption = False,
    key_decoder: KeyDecoderOption = None,
    value_decoder: ValueDecoderOption = None,
    from_beginning: FromBeginningOption = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Print records from the beginning and wait for more; -e stops at the end. -o json means -J.

    Records of one partition come in order; there is no order between partitions. With --group, -O beginning or -O end
    says where to begin if the group has committed nothing.

    -f prints %t topic, %p partition, %o offset, %k key, %s value, %h headers, %T time in ms, %K and %S lengths in bytes
    (-1 for null), %R the value's length as 4 bytes; \\n \\t \\r \\0 \\\\ \\xHH and %%.

    --where takes SUBJECT = OPERAND, !=, contains, ~ (RE2) or is null, where SUBJECT is key, value, header.NAME, or a
    path in JSON: '$.order.price >= 10.50'. -n and --tail count records that fit. Ctrl-C ends it with exit code 130.

    --value-decoder schema shows Avro, Protobuf and JSON Schema as JSON, by the registry of -X schema.registry.url=URL;
    --key and --where look at what is shown. What cannot be decoded is named, and shown as bytes.
    """
    as_json = output.use(output_format) or json_lines
    if group == "":
        raise CliError(Exit.USAGE, "--group is empty; name the group, or leave --group out to read alone")
    places = (["beginning"] if from_beginning else []) + (offset or [])
    places += [f"{sign}@{text}" for sign, text in (("s", since), ("e", until)) if text is not None]
    if tail is not None and (places or group is not None):
        raise CliError(Exit.USAGE, "--tail begins where the newest records do; leave out -O, --since, --until, --group")
    target = find_target(servers, profile, options)
    group = group or target.options.get("group.id") or target.options.get("group_id")
    if group is None and "stored" in places:
        raise CliError(Exit.USAGE, "-O stored: a group stores where it is; name it with --group")
    wanted = parse_places([place for place in places if place != "stored"], to_end=exit_at_end, now_ms=_now_ms())
    with _decoding(target, key_decoder, value_decoder) as decoding:
        render = _decoded(to_json_line if as_json else _compiled(record_format), decoding)
        if key is None and not where and tail is None:
            shown: Render = render
        else:
            from quorumlog_cli.commands.records.newest import Newest, fitting, print_newest

            fit = fitting(key, where or [])
            fit = fit if decoding is None else decoding.where(fit)
            shown = _of_fitting(render, fit.fits)
        if tail is not None:
            newest = Newest(topics=topics, partitions=partition, count=min(tail, count or tail), where=fit)
            more = None if count is None else count - newest.count
            follows = not exit_at_end and more != 0
            seen = print_newest(target, newest, render, partial(_print, count=more, render=shown) if follows else None)
        elif group is not None:
            seen = _consume_as_member(target, topics, group, _checked(wanted, partition), count, shown)
        else:
            seen = _consume(target, topics, partition, wanted, count, shown)
    if exit_at_end:
        output.say(f"% {output.counted(seen, 'record')}")


def _now_ms() -> int:
    return int(time.time() * 1_000)


def _decoding(target: Target, key: str | None, value: str | None) -> AbstractContextManager[Decoding | None]:
    if key is None and value is None:
        return nullcontext()
    from quorumlog_cli.commands.records.schemas import decoding

    return decoding(target, key, value)


def _decoded(render: Callable[[ConsumedRecord], bytes], decoding: Decoding | None) -> Callable[[ConsumedRecord], bytes]:
    return render if decoding is None else lambda record: render(decoding.of(record))


def _of_fitting(render: Render, fits: Callable[[ConsumedRecord], bool]) -> Render:
    return lambda record: render(record) if fits(record) else None


def _compiled(record_format: str) -> Callable[[Any], bytes]:
    try:
        return compile_format(record_format)
    except BadFormat as error:
        raise CliError(Exit.USAGE, f"-f: {error}") from error


def _checked(wanted: Range, partitions: list[int] | None) -> Range:
    """Raises CliError for what a member of a group cannot choose."""
    if partitions:
        raise CliError(Exit.USAGE, "-p: the members of a group share all partitions; leave out -p or --group")
    if wanted.last is not None or wanted.start not in ("earliest", "latest"):
        text = "with --group, -O takes beginning or end; `quorumlog group reset-offsets` moves a group elsewhere"
        raise CliError(Exit.USAGE, text)
    return wanted


def _consume_as_member(
    target: Target,
    topics: list[str],
    group: str,
    wanted: Range,
    count: int | None,
    render: Render,
) -> int:
    """What was printed is committed, also if it is interrupted; but not if it cannot be printed."""
    if wanted.stop is not None:
        _check_topics(target, topics)
    with connected(target) as cluster:
        consumer = cluster.consumer(topics, group=group, start=wanted.start, stop=wanted.stop)
        with FirstInterrupt(consumer.wakeup) as interrupt:
            seen = _print_until(interrupt, consumer, count, render)
        if interrupt.came:
            consumer.close()
            raise KeyboardInterrupt
        return seen


def _check_topics(target: Target, topics: list[str]) -> None:
    """A member waits for topics that do not exist yet; one that stops at the end would print nothing, and be content.

    Raises RequestFailed for a topic that does not exist.
    """
    with connected(replace(target, options=common_options(target.options))) as cluster:
        for topic in topics:
            cluster.admin.describe_topic(topic)


def _print_until(interrupt: FirstInterrupt, consumer: Consumer, count: int | None, render: Render) -> int:
    from quorumlog.client.errors import WokenUp

    try:
        return _print(consumer, count, render, lambda: interrupt.came)
    except WokenUp:
        return 0


def _consume(
    target: Target,
    topics: list[str],
    partitions: list[int] | None,
    wanted: Range,
    count: int | None,
    render: Render,
) -> int:
    starts = {
        (topic, index): start
        for topic in dict.fromkeys(topics)
        for index, start in _starts(target, topic, partitions, wanted).items()
    }
    with connected(target) as cluster:
        consumer = cluster.consumer()
        consumer.assign([(*key, start) for key, start in starts.items()], stop=wanted.stop)
        return _print(consumer, count, render)


def _print(
    consumer: Consumer,
    count: int | None,
    render: Render,
    stops: Callable[[], bool] = lambda: False,
) -> int:
    """Returns how many were printed. stops: asked between polls; what a poll has returned is printed whole."""
    seen = 0
    while not stops() and not consumer.finished and (count is None or seen < count):
        records = consumer.poll(None if count is None else count - seen, POLL_MS)
        for record in records:
            line = render(record)
            if line is not None:
                sys.stdout.buffer.write(line)
                seen += 1
        if records:
            sys.stdout.buffer.flush()
        else:
            check_reader(sys.stdout.fileno())
    return seen


def _starts(target: Target, topic: str, partitions: list[int] | None, wanted: Range) -> dict[int, int | str]:
    """Start by partition. Raises CliError for a partition that the topic does not have."""
    from quorumlog.client.offsets import EARLIEST, LATEST

    with connected(replace(target, options=common_options(target.options))) as cluster:
        existing = [partition.index for partition in cluster.admin.describe_topic(topic).partitions]
        for index in partitions or ():
            if index not in existing:
                raise CliError(Exit.NOT_FOUND, f"topic {topic!r} has partitions {existing}, not {index}")
        chosen = partitions or existing
        if wanted.last is None:
            return dict.fromkeys(chosen, wanted.start)
        keys = [(topic, index) for index in chosen]
        first = cluster.admin.list_offsets(dict.fromkeys(keys, EARLIEST))
        end = cluster.admin.list_offsets(dict.fromkeys(keys, LATEST))
    return {key[1]: max(first[key].offset, end[key].offset - wanted.last) for key in keys}
