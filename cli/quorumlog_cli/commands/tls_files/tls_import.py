"""`quorumlog tls import`: a keystore or truststore of Java becomes PEM."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

JKS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
CONVERT = (
    "keytool -importkeystore -srckeystore {0} -destkeystore {1}.p12 -deststoretype PKCS12, which comes with Java; "
    "then: quorumlog tls import {1}.p12"
)


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="PKCS#12: .p12, .pfx, and what Java writes since 9.")],
    password: Annotated[
        str,
        typer.Option(
            "--password", metavar="env:NAME|file:PATH", help="Where its password is; the command line is public."
        ),
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="PATH", help="Default: beside FILE, with the ending .pem.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Make a PEM file of a keystore (key and chain) or of a truststore (certificates), readable by its owner only.

    JKS, the format of Java before 9, is converted to PKCS#12 by Java's keytool first.
    """
    from quorumlog.security.tls.errors import BadTls
    from quorumlog.security.tls.issuing.folder import Folder
    from quorumlog.security.tls.issuing.keystores import MAX_BYTES, read_keystore
    from quorumlog_cli.commands.tls_files.tls_rows import now

    output.use(output_format)
    with open(file, "rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    if data.startswith(JKS):
        raise CliError(
            Exit.PRECONDITION,
            f"{file} is a keystore in Java's old format (JKS)",
            CONVERT.format(file, file.with_suffix("")),
        )
    target = out or file.with_suffix(".pem")
    if target.exists() and target.samefile(file):
        raise CliError(Exit.USAGE, f"{file} would replace itself: say where the PEM file goes with --out")
    try:
        found = read_keystore(data, _password(password))
    except BadTls as error:
        raise CliError(
            Exit.DATA_INVALID, f"{file}: {error}", "" if password else "--password env:NAME or file:PATH"
        ) from error
    Folder(target.parent, now()).write(target.name, found.key + found.certificates, replace=force)
    what, key = ("a keystore", "ssl.keystore.location") if found.key else ("a truststore", "ssl.truststore.location")
    certificates = output.counted(found.count, "certificate")
    output.tell(
        f"{target} is {what} with {certificates}: {key}={target.resolve()}, and its .type is PEM",
        {"file": str(target), "has_key": bool(found.key), "certificates": found.count},
    )


def _password(said: str) -> str | None:
    kind, _, rest = said.partition(":")
    if not said:
        return None
    if kind == "env" and rest:
        if rest not in os.environ:
            raise CliError(Exit.NOT_FOUND, f"the environment has no {rest}")
        return os.environ[rest]
    if kind == "file" and rest:
        return Path(rest).read_text().rstrip("\r\n")
    raise CliError(
        Exit.USAGE,
        "--password names where the password is: env:NAME or file:PATH",
        "the command line can be seen by all",
    )
