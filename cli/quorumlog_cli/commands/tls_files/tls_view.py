"""`quorumlog tls show` and `quorumlog tls verify`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from quorumlog_cli.commands.tls_files.tls_rows import FolderArgument, folder_at, now, row, row_of, show_rows
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption


def show(
    places: Annotated[list[Path], typer.Argument(metavar="DIR|FILE", help="A folder of `tls init`, or PEM files.")],
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show certificates: whom they are for, and until when. JSON has fingerprints and issuers, too."""
    output.use(output_format)
    show_rows(one for place in places for one in _rows(place))


def verify(folder: FolderArgument, output_format: OutputOption = Format.TABLE) -> None:
    """Check that all files fit together: each pair is read as a node reads it, and shakes hands at each of its hosts.

    It judges as strictly as the strictest readers do. Exit code 4 says that something does not work, 0 that all does;
    certificates that end within 14 days are named.
    """
    from quorumlog.security.tls.issuing.trial import verdicts

    output.use(output_format)
    found = list(verdicts(folder_at(folder), now()))
    output.show(
        ("NAME", "AT", "RESULT", "UNTIL"),
        [[one.name, one.host or "-", one.problem or "ok", f"{one.ends:%Y-%m-%d}"] for one in found],
        {
            "certificates": [
                {"name": one.name, "host": one.host or None, "problem": one.problem or None,
                 "not_after": one.ends.isoformat(), "ends_soon": one.ends_soon}
                for one in found
            ]
        },
    )  # fmt: skip
    soon = dict.fromkeys(one.name for one in found if one.ends_soon)
    if soon:
        output.say(f"\nThese end within 14 days: {', '.join(soon)}. quorumlog tls renew {folder} issues them anew")
    if wrong := dict.fromkeys(one.name for one in found if one.problem):
        raise CliError(Exit.DATA_INVALID, f"{', '.join(wrong)}: the files do not work", "see RESULT above")


def _rows(place: Path) -> Iterator[dict[str, Any]]:
    from quorumlog.security.tls.errors import BadTls
    from quorumlog.security.tls.pem import MAX_BYTES, read_blocks

    if place.is_dir():
        folder = folder_at(place)
        yield from (row("ca.pem", one) for one in folder.trusted())
        yield from (row(f"{one.name}.keystore.pem", one.certificate) for one in folder.issued())
        return
    with open(place, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    try:
        found = [row_of(str(place), block.der) for block in read_blocks(data) if block.is_certificate]
    except ValueError as error:
        raise BadTls(f"{place}: {error}") from error
    if not found:
        raise BadTls(f"{place} has no certificate")
    yield from found
