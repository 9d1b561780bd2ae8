"""Options of `consume` and `produce`, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# --- of consume ---

GroupOption = Annotated[
    str | None,
    typer.Option(
        "-G",
        "--group",
        metavar="GROUP",
        help="Share the topics with the group's members, from where it has committed; commit what is printed.",
    ),
]
PlaceOption = Annotated[
    list[str] | None,
    typer.Option(
        "-O",
        "--offset",
        metavar="PLACE",
        help="beginning, end, 47, -3 (the last three), @TIME, e@TIME (stop at that time); stored: with --group.",
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="From 2h, 30m, PT1H ago, a date, or ms since 1970. As -O @TIME."),
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Stop before the first record of then. As -O e@TIME.")
]
TailOption = Annotated[
    int | None,
    typer.Option("--tail", metavar="N", min=1, help="The newest N by time over all partitions, then new ones."),
]
KeyOption = Annotated[
    str | None, typer.Option("--key", metavar="TEXT", help="Only records with this key; \\xHH is a byte.")
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="CONDITION", help="Only records that fit, as '$.price > 5'; repeat for more."),
]
PartitionsOption = Annotated[
    list[int] | None, typer.Option("-p", "--partition", help="Only this partition; may be repeated. [default: all]")
]
ExitOption = Annotated[bool, typer.Option("-e", "--exit", help="Stop at the end instead of waiting for more.")]
RecordFormatOption = Annotated[
    str,
    typer.Option(
        "-f",
        "--format",
        metavar="TEMPLATE",
        show_default="%s\\n",
        help="As kcat: %t %p %o %k %s %h %T, lengths %K %S, \\n \\xHH.",
    ),
]
JsonLinesOption = Annotated[bool, typer.Option("-J", "--json-lines", help="JSON lines, which produce -J accepts.")]
KeyDecoderOption = Annotated[
    str | None,
    typer.Option("--key-decoder", metavar="NAME", help="string, integer, long, hex, or schema: by the registry."),
]
ValueDecoderOption = Annotated[str | None, typer.Option("--value-decoder", metavar="NAME", help="The same, of values.")]
FromBeginningOption = Annotated[
    bool, typer.Option("--from-beginning", help="Same as -O beginning, which is the default.")
]

# --- of produce ---

KeyDelimiterOption = Annotated[
    str | None,
    typer.Option(
        "-K", "--key-delimiter", metavar="TEXT", help=r"Each line is KEY TEXT VALUE. TEXT may have \t \n \r \xHH."
    ),
]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option("-H", "--header", metavar="NAME=VALUE", help="Header of every record; repeatable."),
]
FilesOption = Annotated[
    list[Path] | None,
    typer.Option("-f", "--file", metavar="FILE", help="Read lines of this file; may be repeated."),
]
TemplateOption = Annotated[
    str | None,
    typer.Option("--format", metavar="TEMPLATE", help="Each line is as consume -f prints it: %k:%s, %p %T %h %s."),
]
KeySchemaOption = Annotated[
    str | None,
    typer.Option("--key-schema", metavar="SCHEMA", help="FILE (.avsc, .json, .proto), id or subject of the registry."),
]
ValueSchemaOption = Annotated[
    str | None, typer.Option("--value-schema", metavar="SCHEMA", help="The same, of values: JSON is encoded by it.")
]
TimestampOption = Annotated[
    str | None,
    typer.Option("--timestamp", metavar="TIME", help="Of each record: ms since 1970, a date, or 2h (ago)."),
]
