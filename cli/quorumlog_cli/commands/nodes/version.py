"""`quorumlog version`."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import typer

from quorumlog import __version__
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False)
PACKAGES = ("grpcio", "protobuf", "google-crc32c", "immutables", "pyarrow", "pyspark")


@app.command("version")
def show_version(output_format: OutputOption = Format.TABLE) -> None:
    """Show the versions to name in a bug report."""
    output.use(output_format)
    found = {"quorumlog": __version__, "python": platform.python_version(), "system": platform.platform()}
    found |= {name: _version(name) for name in PACKAGES}
    output.show(("PART", "VERSION"), list(found.items()), found)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
