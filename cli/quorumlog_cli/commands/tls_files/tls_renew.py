"""`quorumlog tls renew` and `quorumlog tls revoke`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.commands.tls_files.tls_rows import DaysOption, FolderArgument, folder_at, now, row, show_rows
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.security.tls.issuing.folder import Folder

NEXT = ("`quorumlog tls renew {0} --authority` goes on", "`quorumlog tls renew {0} --authority` ends it", "")


def renew(
    folder: FolderArgument,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="As files are called: node-1, client-ada. Default: all."),
    ] = None,
    authority: Annotated[
        bool,
        typer.Option("--authority", help="Renew the authority: one step of three; it says what to do before the next."),
    ] = False,
    days: DaysOption = 90,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Issue certificates anew, with new keys and for the same names.

    The authority is renewed under its own name, without anybody being refused meanwhile: a second one is trusted
    beside it; then it issues everything; then the first one is trusted no longer. Between two steps the files go to
    all machines.
    """
    output.use(output_format)
    place = folder_at(folder)
    if authority:
        if names:
            raise CliError(Exit.USAGE, "--authority renews what is behind all certificates; name none with it")
        _renew_authority(place, days)
        return
    issued = place.issued()
    unknown = [name for name in names or () if name not in [one.name for one in issued]]
    if unknown:
        has = ", ".join(one.name for one in issued) or "none"
        raise CliError(Exit.NOT_FOUND, f"{folder} has no certificate {unknown[0]}; it has: {has}")
    chosen = [one for one in issued if not names or one.name in names]
    place.issue([place.subject_of(one) for one in chosen], days, replace=True)
    _show(place, [one.name for one in chosen])
    output.say("\nBring them to their nodes and clients before the old ones end.")


def revoke(
    folder: FolderArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As files are called: node-1, client-ada, or ada.")],
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Note the fingerprint of a certificate that was lost or stolen, in DIR/revoked.txt.

    Nodes refuse a certificate, of a client or a node, that stands in the file that quorumlog.denied.certificates names,
    and end its open connections. They look at the file every 10 s.
    """
    from quorumlog.settings.security import DENIED_CERTIFICATES

    output.use(output_format)
    place = folder_at(folder)
    name, mark = place.revoke(name)
    path = place.path / "revoked.txt"
    works = f"Nodes refuse it once their files have {DENIED_CERTIFICATES}={path.resolve()}"
    output.tell(f"{mark} is in {path}. {works}", {"sha256": mark, "name": name, "file": str(path)})


def _renew_authority(place: Folder, days: int) -> None:
    from quorumlog.security.tls.issuing.rolls import renew_authority

    step = renew_authority(place, now(), days)
    _show(place, [one.name for one in place.issued()] if step.number == 2 else [], step.number)
    output.say(f"\nStep {step.number} of 3: {step.done}.")
    if hint := NEXT[step.number - 1].format(place.path):
        output.say(f"Then {hint}.")


def _show(place: Folder, names: list[str], step: int | None = None) -> None:
    rows = [row("ca.pem", one) for one in place.trusted()] if step else []
    rows += [row(f"{one.name}.keystore.pem", one.certificate) for one in place.issued() if one.name in names]
    show_rows(rows, folder=str(Path(place.path)), step=step)
