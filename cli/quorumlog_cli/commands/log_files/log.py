"""`quorumlog log`: reads the files of logs, imports and exports. Each verb has its module; quorumlog_cli/offline is
shared.
"""

from __future__ import annotations

import typer

from quorumlog_cli.commands.log_files.log_dump import dump
from quorumlog_cli.commands.log_files.log_explain_compaction import explain_compaction
from quorumlog_cli.commands.log_files.log_export import export
from quorumlog_cli.commands.log_files.log_grep import grep
from quorumlog_cli.commands.log_files.log_hexdump import hexdump
from quorumlog_cli.commands.log_files.log_import import import_
from quorumlog_cli.commands.log_files.log_index import index, segments
from quorumlog_cli.commands.log_files.log_verify import verify

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Read and check the files of logs; import, export.")

app.command("dump")(dump)
app.command("verify")(verify)
app.command("segments")(segments)
app.command("index")(index)
app.command("hexdump")(hexdump)
app.command("grep")(grep)
app.command("explain-compaction")(explain_compaction)
app.command("import")(import_)
app.command("export")(export)
