"""`quorumlog produce TOPIC`: sends lines of standard input or of a file as records, with kcat's option letters."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.records.options import (
    FilesOption,
    HeaderOption,
    KeyDelimiterOption,
    KeySchemaOption,
    TemplateOption,
    TimestampOption,
    ValueSchemaOption,
)
from quorumlog_cli.connecting.connect import (
    API_TIMEOUT_MS,
    ConfigOption,
    ProfileOption,
    ServersOption,
    connected,
    find_target,
)
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.line_template import compile_template
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.places import time_ms
from quorumlog_cli.terminal.records_text import BadFormat, BadLine, from_json_line, parse_delimiter

if TYPE_CHECKING:
    from quorumlog.client.blocking import Producer, SendFuture
    from quorumlog_cli.profiles.profile import Target

app = typer.Typer(add_completion=False)
DELIVERY_TIMEOUT_MS = 30_000  # short, for a person who waits; programs set -X delivery.timeout.ms=120000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Headers = list[tuple[str, bytes | None]]
Encode = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a line becomes a record. delimiter: between key and value. null: an empty key or value becomes null.

    key: of every record; with a delimiter, of a line that has none. template: reads a line in its own way, in place of
    the delimiter. timestamp_ms: of every record that brings none; None: the time of sending. encode_key, encode_value:
    make bytes by a schema of what is JSON in the line.
    """

    delimiter: bytes | None
    key: bytes | None
    null: bool
    headers: Headers
    as_json: bool
    template: Callable[[bytes], dict[str, Any]] | None = None
    timestamp_ms: int | None = None
    encode_key: Encode | None = None
    encode_value: Encode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """first: of the records; None if there is none. number: of the last line that was read, from 1; 0 without one.

    stopped: why that line was not sent, and none after it.
    """

    first: SendFuture | None
    number: int
    stopped: BaseException | None


@app.command()
def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    key_delimiter: KeyDelimiterOption = None,
    key: Annotated[
        str | None, typer.Option("-k", "--key", help="The key of every record; with -K, of lines without TEXT.")
    ] = None,
    null: Annotated[bool, typer.Option("-Z", "--null", help="An empty key or value is null.")] = False,
    header: HeaderOption = None,
    partition: Annotated[int | None, typer.Option("-p", "--partition", min=0, help="For every record.")] = None,
    codec: Annotated[str, typer.Option("-z", "--compression", metavar="CODEC", help=", ".join(CODECS))] = "none",
    files: FilesOption = None,
    template: TemplateOption = None,
    timestamp: TimestampOption = None,
    tee: Annotated[bool, typer.Option("-T", "--tee", help="Also print each line that is sent.")] = False,
    json_lines: Annotated[bool, typer.Option("-J", "--json-lines", help="Lines as consume -J prints them.")] = False,
    key_schema: KeySchemaOption = None,
    value_schema: ValueSchemaOption = None,
    acks: Annotated[str, typer.Option("--acks", help="all, 1 or 0.")] = "all",
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Send each line as a record. Returns when all are acknowledged: on disk, on every in-sync replica.

    A line that is not a record ends the input: the lines before it are written, it and those after it are not, and the
    error says how many were. With -J such a line is one without "value" or with a field that is unknown; with -K, one
    without the delimiter, unless -k gives it a key; with --format, one that does not fit.

    --format has %k key, %s value, %h headers (a=1,b=2), %p partition, %T time in ms, and the text between them with
    \\t \\n \\xHH and %%. With -Z, KEY: and nothing behind it is a tombstone.

    --value-schema takes lines of JSON, as consume --value-decoder schema prints them, and encodes them by the registry
    of -X schema.registry.url=URL. A file is registered for the topic, unless -X auto.register.schemas=false.

    Exit code 9 if only some were acknowledged; of those that were sent, the others may or may not be in the log.
    """
    output.use(output_format)
    if template is not None and (json_lines or key_delimiter is not None):
        raise CliError(Exit.USAGE, "--format says where the key is; leave out -J and -K")
    if json_lines and (key_delimiter is not None or key is not None or null):
        raise CliError(Exit.USAGE, "-J takes keys and values from the JSON; -K, -k and -Z are for lines of text")
    shape = Shape(
        delimiter=_delimiter(key_delimiter) if key_delimiter is not None else None,
        key=key.encode() if key is not None else None,
        null=null,
        headers=[_header(text) for text in header or ()],
        as_json=json_lines,
        template=_template(template) if template is not None else None,
        timestamp_ms=time_ms(timestamp, time.time_ns() // 1_000_000) if timestamp is not None else None,
    )
    target = find_target(servers, profile, options)
    if sys.stdin.isatty() and not files:
        output.say("% one record per line; Ctrl-D ends the input")
    ours = {
        "acks": acks,
        "compression_type": codec,
        "delivery_timeout_ms": DELIVERY_TIMEOUT_MS,
        "max_block_ms": API_TIMEOUT_MS,
    }
    with connected(target, **{**ours, **target.options}) as cluster:
        with _encoding(target, topic, key_schema, value_schema) as encoders:
            producer = cluster.producer()
            sent = _send(producer, topic, partition, replace(shape, **encoders), _lines(files or []), tee=tee)
            _finish(producer, topic, sent)


@contextmanager
def _encoding(target: Target, topic: str, key: str | None, value: str | None) -> Iterator[dict[str, Any]]:
    """Fields of a Shape. Raises CliError, SchemaError, OSError for a schema that cannot be had."""
    if key is None and value is None:
        yield {}
        return
    from quorumlog_cli.commands.records.schemas import encoding, registry_of

    with registry_of(target) as registry:
        found = {}
        if key is not None:
            found["encode_key"] = encoding(target, registry, topic, key, is_key=True)
        if value is not None:
            found["encode_value"] = encoding(target, registry, topic, value)
        yield found


def _delimiter(text: str) -> bytes:
    try:
        return parse_delimiter(text)
    except BadFormat as error:
        raise CliError(Exit.USAGE, f"-K {text}: {error}") from error


def _header(text: str) -> tuple[str, bytes | None]:
    name, found, value = text.partition("=")
    if not name:
        raise CliError(Exit.USAGE, f"-H {text}: not NAME=VALUE")
    return name, value.encode() if found else None


def _template(text: str) -> Callable[[bytes], dict[str, Any]]:
    try:
        return compile_template(text)
    except BadFormat as error:
        raise CliError(Exit.USAGE, f"--format {text}: {error}") from error


def _lines(files: list[Path]) -> Iterator[bytes]:
    """Lines without line feeds, of standard input if there are no files. Text after the last line feed is a line too,
    unless it is empty."""
    if not files:
        yield from _stripped(sys.stdin.buffer)
    for file in files:
        with file.open("rb") as source:
            yield from _stripped(source)


def _stripped(source: Iterable[bytes]) -> Iterator[bytes]:
    for line in source:
        yield line.rstrip(b"\n").removesuffix(b"\r")


def _send(
    producer: Producer, topic: str, partition: int | None, shape: Shape, lines: Iterator[bytes], *, tee: bool = False
) -> Sent:
    """Sends lines until one is no record or cannot be read: nothing that comes after it may be written before it."""
    first: SendFuture | None = None
    number = 0
    try:
        for line in lines:
            number += 1
            future = producer.send(topic, **{"partition": partition, **record_of(line, shape)})
            if tee:
                sys.stdout.buffer.write(line + b"\n")
            if first is None:
                first = future
    except (Exception, KeyboardInterrupt) as error:  # what was sent before is waited for and told
        return Sent(first=first, number=number, stopped=error)
    return Sent(first=first, number=number, stopped=None)


def record_of(line: bytes, shape: Shape) -> dict[str, Any]:
    """What `Producer.send` takes. Raises BadLine, and SchemaError where a schema encodes."""
    record = _plain_record_of(line, shape)
    for part, encode in (("key", shape.encode_key), ("value", shape.encode_value)):
        if encode is not None and record[part] is not None:
            record[part] = encode(record[part])
    return record


def _plain_record_of(line: bytes, shape: Shape) -> dict[str, Any]:
    if shape.as_json:
        record = from_json_line(line)
        when_ms = shape.timestamp_ms if record["timestamp_ms"] is None else record["timestamp_ms"]
        return {**record, "headers": [*record["headers"], *shape.headers], "timestamp_ms": when_ms}
    read = _parts(line, shape)
    key, value = read["key"], read["value"]
    return {
        **read,
        "key": None if shape.null and not key else key,
        "value": None if shape.null and not value else value,
        "headers": [*read.get("headers", ()), *shape.headers],
    }


def _parts(line: bytes, shape: Shape) -> dict[str, Any]:
    """Of a line that is not JSON; key and value at least."""
    own: dict[str, Any] = {"key": shape.key, "value": line}
    if shape.timestamp_ms is not None:
        own["timestamp_ms"] = shape.timestamp_ms
    if shape.template is not None:
        return {**own, **shape.template(line)}
    if shape.delimiter is not None:
        before, found, after = line.partition(shape.delimiter)
        if found:
            return {**own, "key": before, "value": after}
        if shape.key is None:
            raise BadLine(f"the delimiter {shape.delimiter!r} is not in it: {line[:80]!r}")
    return own


def _finish(producer: Producer, topic: str, sent: Sent) -> None:
    """Flush and print the result. Raises the failure, as PARTIAL if some records were acknowledged."""
    failure: Exception | None = None
    where = None
    try:
        producer.flush()
        where = sent.first.result() if sent.first is not None else None
        producer.close()
    except Exception as error:  # the counts decide the exit code
        failure = error
    stats = producer.stats
    if failure is not None and not stats.acknowledged:
        raise failure
    if stats.acknowledged or sent.stopped is None:
        _tell(topic, stats, where)
    if sent.stopped is not None:
        _tell_stop(sent, stats, failure)
    if failure is not None:
        raise CliError(Exit.PARTIAL, f"{stats.failed} records failed, {stats.acknowledged} did not: {failure}")


def _tell_stop(sent: Sent, stats: Any, failure: Exception | None) -> None:
    """Raises what ended the input before its end. failure: of the records that were sent before."""
    stopped = sent.stopped
    assert stopped is not None
    if isinstance(stopped, KeyboardInterrupt):
        raise stopped
    why = f"line {sent.number}: {stopped}" if isinstance(stopped, BadLine) else str(stopped)
    if not stats.acknowledged:
        if isinstance(stopped, BadLine):
            raise CliError(Exit.USAGE, f"{why}; nothing was written") from stopped
        raise stopped
    lost = f", {stats.failed} failed ({failure})" if failure is not None else ""
    written = output.counted(stats.acknowledged, "record")
    raise CliError(Exit.PARTIAL, f"{why}; {written} before it written{lost}, nothing after it") from stopped


def _tell(topic: str, stats: Any, where: Any) -> None:
    if output.is_json():
        output.show_json(
            {
                "topic": topic,
                "acknowledged": stats.acknowledged,
                "failed": stats.failed,
                "may_be_duplicated": stats.duplicates_possible,
                "first": {"partition": where.partition, "offset": where.offset} if where is not None else None,
            }
        )
        return
    place = f", the first at {topic}-{where.partition} offset {where.offset}" if where is not None else ""
    twice = f"; {stats.duplicates_possible} may be stored twice" if stats.duplicates_possible else ""
    output.say(f"% {output.counted(stats.acknowledged, 'record')} acknowledged{place}{twice}")
