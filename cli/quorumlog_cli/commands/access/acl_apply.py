"""`quorumlog acl export` and `apply`: all access rules as a file, which can be kept, compared and put in force."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.commands.access import acl_words as words
from quorumlog_cli.commands.access.acl_file import read_acls, write_acls
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.confirm import confirmed
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.security.acl.content import AclContent


def export(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="Where to write it; -: standard output.")] = "-",
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Write all access rules as a file that acl apply reads: JSON, one rule a line, sorted."""
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        found = cluster.admin.describe_acls()
    text = write_acls(found)
    if file == "-":
        sys.stdout.write(text)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(Exit.PRECONDITION, f"{file} cannot be written: {error.strerror}") from error
    output.tell(f"{output.counted(len(found), 'rule')} in {file}", {"file": file, "rules": len(found)})


def apply(
    file: Annotated[str, typer.Argument(metavar="FILE", help="As acl export wrote it; -: standard input.")],
    prune: Annotated[bool, typer.Option("--prune", help="Also remove the rules that the file does not have.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Make the rules of a file, once the plan is shown: + is new, - goes. New ones come first.

    Exit code 9: the cluster refused some.
    """
    output.use(output_format)
    wanted = read_acls(_text_of(file))
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        from quorumlog.client.administration.acls import exactly

        there = cluster.admin.describe_acls()
        new = sorted(set(wanted) - set(there))
        gone = sorted(set(there) - set(wanted)) if prune else []
        _show_plan(new, gone, dry_run)
        if dry_run or not (new or gone):
            return
        if not yes and not _confirmed(new, gone, target.name):
            raise CliError(Exit.FAILED, "nothing was changed", "--yes skips the question")
        results = cluster.admin.create_acls(new)
        refused = [(acl, one) for acl, one in zip(new, results, strict=True) if one.error_code]
        for acl, one in refused:
            output.complain(f"{' '.join(words.row(acl))}: {one.error_message}")
        if refused:
            raise CliError(
                Exit.PARTIAL, f"the cluster refused {output.counted(len(refused), 'rule')}; none was removed"
            )
        cluster.admin.delete_acls([exactly(acl) for acl in gone])


def _text_of(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CliError(Exit.NOT_FOUND, f"there is no file {file}", "quorumlog acl export writes one") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(Exit.DATA_INVALID, f"{file} cannot be read: {error}") from error


def _show_plan(new: list[AclContent], gone: list[AclContent], dry_run: bool) -> None:
    if output.is_json():
        plan = {"new": [words.as_document(acl) for acl in new], "removed": [words.as_document(acl) for acl in gone]}
        output.show_json({"dry_run": dry_run, **plan})
        return
    if not new and not gone:
        output.say("the cluster has these rules already")
        return
    rows = [["+", *words.row(acl)] for acl in new] + [["-", *words.row(acl)] for acl in gone]
    output.show_table((" ", *words.COLUMNS), rows)


def _confirmed(new: list[AclContent], gone: list[AclContent], cluster: str) -> bool:
    made, removed = output.counted(len(new), "rule"), output.counted(len(gone), "rule")
    return confirmed(f"Make {made} and remove {removed} of {cluster}?")
