"""`quorumlog server`: runs one node in the foreground; checks and explains its configuration."""

from __future__ import annotations

import os
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Run one node in the foreground; check its configuration."
)
config_app = typer.Typer(add_completion=False, no_args_is_help=True)
app.add_typer(config_app, name="config", help="Check and explain a node's configuration.")

FileOption = Annotated[Path, typer.Option("-c", "--config", metavar="FILE", help="server.properties or .toml.")]


@app.command()
def start(
    config: FileOption,
    options: Annotated[
        list[str] | None, typer.Option("-X", metavar="KEY=VALUE", help="Override one key; may be repeated.")
    ] = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Run a node in the foreground. SIGTERM or Ctrl-C stop it after it has handed over its leaderships.

    Its directories must be formatted (quorumlog storage format). The log goes to stderr (log.format=json or -o json for
    programs). stdout gets a LISTENING line with the addresses, and a READY line once the node serves, each a word and a
    JSON object. metrics.port opens /readyz, /healthz and /metrics.
    """
    output.use(output_format)
    command = [sys.executable, "-P", "-m", "quorumlog_server", "-c", str(config)]
    for option in (*(options or ()), *(["log.format=json"] if output.is_json() else [])):
        command += ["-X", option]
    sys.stdout.flush()
    os.execv(sys.executable, command)  # the node replaces this process, so signals and exit code are the node's


@config_app.command()
def lint(config: FileOption, output_format: OutputOption = Format.TABLE) -> None:
    """Check a whole configuration. Exit code 2 if a node would not start with it.

    What it names is not opened: a node reads its keys and certificates when it starts. quorumlog tls verify reads those
    that quorumlog tls init has made.
    """
    from quorumlog_server.config.config import read_config

    output.use(output_format)
    checked = read_config(str(config), (), os.environ)
    if output.is_json():
        output.show_json({"valid": True, "warnings": list(checked.warnings)})
        return
    for warning in checked.warnings:
        output.say(f"warning  {warning}")
    print(f"{config}: valid, {len(checked.warnings)} warnings")


@config_app.command("show")
def show_config(config: FileOption, output_format: OutputOption = Format.TABLE) -> None:
    """Show every setting as the node would read it from file, environment and defaults."""
    from quorumlog_server.config.config import read_config, shown

    output.use(output_format)
    values = {name: _plain(value) for name, value in shown(read_config(str(config), (), os.environ)).items()}
    output.show(("SETTING", "VALUE"), list(values.items()), values)


@config_app.command()
def explain(key: Annotated[str, typer.Argument(metavar="KEY")], output_format: OutputOption = Format.TABLE) -> None:
    """Explain a key: meaning, default, limits."""
    from quorumlog.configs.broker import DECIDED_TOGETHER, TOPIC_SYNONYMS
    from quorumlog.configs.live import key_of_listener
    from quorumlog_server.config.foreign_keys import foreign
    from quorumlog_server.config.keys import COARSER, NODE_KEYS, check_known

    output.use(output_format)
    check_known({key: ""}, "explain")
    found: dict[str, Any] = {"key": key}
    if key in NODE_KEYS:
        node_key = NODE_KEYS[key]
        found |= {
            "meaning": node_key.doc,
            "default": node_key.default,
            "minimum": node_key.minimum,
            "maximum": node_key.maximum,
        }
    elif key in TOPIC_SYNONYMS:
        found |= {"meaning": f"The default of the topic config {TOPIC_SYNONYMS[key]}."}
        if TOPIC_SYNONYMS[key] in DECIDED_TOGETHER:
            found |= {"effect": "A new cluster takes it from its first active controller's file; then use config set."}
    elif key in COARSER:
        found |= {"meaning": _coarser(key)}
    elif (of_listener := key_of_listener(key)) is not None:
        found |= {"meaning": of_listener.doc, "default": of_listener.default, "minimum": of_listener.minimum}
    elif (of_kafka := foreign(key)) is not None:
        found |= {"effect": of_kafka.effect, "meaning": f"A key of Kafka. {of_kafka.reason}"}
    output.show(("FIELD", "VALUE"), [[name, value] for name, value in found.items()], found)


def _coarser(key: str) -> str:
    """Of one of Kafka's keys that say the same in different units."""
    from quorumlog.configs.broker import BROKER_NAMES
    from quorumlog_server.config.keys import COARSER

    topic_config, unit_ms = COARSER[key]
    finer = [name for name, (meant, ms) in COARSER.items() if meant == topic_config and ms < unit_ms]
    stronger = " and ".join((*finer, BROKER_NAMES[topic_config]))
    verb = "win" if finer else "wins"
    return f"The default of the topic config {topic_config}, in {key.rpartition('.')[2]}. {stronger} {verb} over it."


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"host", "port"}:
        return f"{value['host']}:{value['port']}"
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, Enum):
        return value.value
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
