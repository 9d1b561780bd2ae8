"""`quorumlog schema`: the JSON Schema of what a command prints with `-o json`."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False)


@app.command("schema")
def schema(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="Its words, such as topic list. None: which are.")
    ] = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the JSON Schema of the document that a command prints with -o json, or which commands there are.

    Later versions may add fields; those that are always there stay, and keep their types. An error is a document on
    stderr, whichever command it is of: quorumlog schema error.
    """
    from quorumlog_cli.documents.table import DOCUMENTS

    output.use(output_format)
    name = " ".join(command or ())
    if not name:
        rows = [{"command": one, "lines": prints.line is not None} for one, prints in DOCUMENTS.items()]
        cells = [(row["command"], "one on each line" if row["lines"] else "one document") for row in rows]
        output.show(("COMMAND", "PRINTS"), cells, {"commands": rows})
    elif name in DOCUMENTS:
        output.show_json(DOCUMENTS[name].schema())
    else:
        like = difflib.get_close_matches(name, DOCUMENTS, n=3) or [one for one in DOCUMENTS if one.startswith(name)]
        hint = f"did you mean {', '.join(like[:3])}?" if like else "quorumlog schema lists them"
        raise CliError(Exit.NOT_FOUND, f"there is no command {name!r} with -o json", hint)
