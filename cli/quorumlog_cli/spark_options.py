"""A target's options as those of the format `quorumlog`, which Spark keeps in plans and event logs."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from quorumlog_cli.profiles.client_security import rooted
from quorumlog_cli.terminal.errors import CliError, Exit

if TYPE_CHECKING:
    from quorumlog.client.options import CommonOptions
    from quorumlog_cli.profiles.profile import Target


def spark_options(target: Target, kind: type[CommonOptions]) -> dict[str, str]:
    """Those of the target's client options that this kind of client knows. A secret stays the name of its source.

    Raises ConfigError, also for an option that no client knows, and CliError for a secret in clear.
    """
    from quorumlog.client.options import ConsumerOptions, ProducerOptions, parse_options
    from quorumlog.spark.session.protection import is_in_clear

    known = {field.name for field in fields(kind)}
    given = {name: value for name, value in target.options.items() if name in known}
    for name, value in given.items():
        if is_in_clear(name, str(value)):
            raise CliError(
                Exit.USAGE,
                f"Spark keeps its options where others may read them: give {name}=env:NAME, file:PATH or "
                "keyring:SERVICE/USER",
            )
    parse_options(kind, given, {})
    of_any = {field.name for one in (ConsumerOptions, ProducerOptions) for field in fields(one)}
    for name in target.options:
        if name not in of_any:
            parse_options(kind, {name: target.options[name]}, {})  # it names the nearest one
    return {
        f"kafka.{name.replace('_', '.')}": str(value)
        for name, value in {**rooted(given), "bootstrap_servers": target.bootstrap_servers}.items()
    }
