"""`quorumlog spark shell`: pyspark's own shell, ready to read from the cluster."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from quorumlog_cli import spark_startup
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, find_target
from quorumlog_cli.spark_options import spark_options
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

MasterOption = Annotated[str, typer.Option(metavar="URL", help="Where Spark runs: local[2], spark://HOST:7077.")]
ConfOption = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")
]


def shell(
    master: MasterOption = "local[2]",
    conf: ConfOption = None,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Start pyspark with a Java that it can use, and with `topic("NAME")`, a DataFrame of a topic of this cluster.

    -o json starts nothing: it prints the command and the environment variables, for a notebook or an editor.
    """
    from quorumlog.client.options import ConsumerOptions
    from quorumlog.spark.python_path import with_early
    from quorumlog.spark.session.java import NoJava, use_java

    target = find_target(servers, profile, options)
    beside = str(Path(sys.executable).parent)
    program = shutil.which("pyspark", path=os.pathsep.join((beside, os.environ.get("PATH", ""))))
    if program is None:
        raise CliError(Exit.PRECONDITION, "pyspark is not installed", "pip install 'quorumlog[spark]'")
    try:
        use_java()
    except NoJava as error:
        raise CliError(Exit.PRECONDITION, str(error), "quorumlog spark doctor looks at the rest") from error
    command = [program, "--master", master, *(word for setting in conf or [] for word in ("--conf", setting))]
    environment = {
        "JAVA_HOME": os.environ["JAVA_HOME"],
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": with_early(os.environ.get("PYTHONPATH", "")),
        "PYTHONSTARTUP": str(spark_startup.__file__),
        spark_startup.SERVERS: target.bootstrap_servers,
        spark_startup.OPTIONS: json.dumps(spark_options(target, ConsumerOptions)),
    }
    if output.use(output_format):
        output.show_json({"command": command, "environment": environment})
        return
    os.execve(program, command, {**os.environ, **environment})
