"""`quorumlog tls`: makes certificates for nodes and clients, renews, shows and checks them."""

from __future__ import annotations

import typer

from quorumlog_cli.commands.tls_files.tls_import import import_
from quorumlog_cli.commands.tls_files.tls_init import init
from quorumlog_cli.commands.tls_files.tls_renew import renew, revoke
from quorumlog_cli.commands.tls_files.tls_view import show, verify

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Make certificates for nodes and clients; renew and check them."
)

app.command("init")(init)
app.command("renew")(renew)
app.command("show")(show)
app.command("verify")(verify)
app.command("import")(import_)
app.command("revoke")(revoke)
