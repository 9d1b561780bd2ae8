"""`quorumlog config`: settings of topics, brokers and groups, and levels of loggers, changed while the cluster runs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.cluster.config_values import keys_and_values
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.administration.config_change import ConfigChange
    from quorumlog.messages.cluster import DescribedConfig

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show and change settings of topics, brokers and groups."
)


class Entity(StrEnum):
    TOPIC = "topic"
    BROKER = "broker"
    GROUP = "group"
    BROKER_LOGGER = "broker-logger"


EntityOption = Annotated[Entity, typer.Option("--entity-type", help="Whose settings.")]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A topic; or a broker's id, or `default` for all brokers; or a group; or the id of the broker whose "
        "loggers they are.",
    ),
]
RESOURCE_TYPES = {Entity.TOPIC: 2, Entity.BROKER: 4, Entity.BROKER_LOGGER: 8, Entity.GROUP: 32}  # Kafka's numbers
ALL_BROKERS = "default"
SOURCES = {1: "topic", 2: "broker", 3: "all brokers", 4: "file", 5: "default", 6: "process", 8: "group"}
BY_DEFAULT = 5


@app.command()
def get(
    name: NameArgument,
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY…]", help="Show only these.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also show settings that have their default.")] = False,
    entity: EntityOption = Entity.TOPIC,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show settings and where each comes from."""
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        found = cluster.admin.describe_configs(
            _resource_name(entity, name), resource_type=RESOURCE_TYPES[entity], names=keys or ()
        ).configs
    missing = [key for key in keys or () if key not in [config.name for config in found]]
    if missing:
        raise CliError(Exit.NOT_FOUND, f"{entity} {name} has no setting {missing[0]}")
    rows = [_row(config) for config in found if everything or keys or config.source != BY_DEFAULT]
    output.show(("KEY", "VALUE", "FROM"), [[row["key"], row["value"], row["source"]] for row in rows], rows)


@app.command("set")
def set_values(
    name: NameArgument,
    values: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE…", help="KEY+=WORD adds a word to a list, KEY-=WORD removes it."),
    ],
    entity: EntityOption = Entity.TOPIC,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Let the controller check the change, but change nothing.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Change settings; the others stay as they are."""
    given = keys_and_values(values)
    changes = _changes(given)
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        cluster.admin.alter_configs(
            _resource_name(entity, name), changes, resource_type=RESOURCE_TYPES[entity], validate_only=dry_run
        )
    _show_changed(entity, name, given, "would set" if dry_run else "set")


@app.command()
def unset(
    name: NameArgument,
    keys: Annotated[list[str], typer.Argument(metavar="KEY…")],
    entity: EntityOption = Entity.TOPIC,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Let the controller check the change, but change nothing.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Remove settings, so that the value for all brokers, of the file, or the default applies again."""
    changes: dict[str, ConfigChange] = dict.fromkeys(keys)
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        cluster.admin.alter_configs(
            _resource_name(entity, name), changes, resource_type=RESOURCE_TYPES[entity], validate_only=dry_run
        )
    _show_changed(entity, name, dict.fromkeys(keys), "would unset" if dry_run else "unset")


def _changes(given: Mapping[str, str]) -> dict[str, ConfigChange]:
    """given: values by key; a key may end in `+` or `-`. Raises CliError(USAGE) for a key given twice."""
    from quorumlog.client.administration.config_change import Append, Subtract

    changes: dict[str, ConfigChange] = {}
    for written, value in given.items():
        key = written[:-1].rstrip() if written.endswith(("+", "-")) else written
        if key in changes:
            raise CliError(Exit.USAGE, f"{key} is given twice")
        changes[key] = Append(value) if written.endswith("+") else Subtract(value) if written.endswith("-") else value
    return changes


def _resource_name(entity: Entity, name: str) -> str:
    return "" if entity is Entity.BROKER and name == ALL_BROKERS else name


def _row(config: DescribedConfig) -> dict[str, Any]:
    return {
        "key": config.name,
        "value": config.value,
        "source": SOURCES.get(config.source, str(config.source)),
        "read_only": config.read_only,
    }


def _show_changed(entity: Entity, name: str, changes: Mapping[str, str | None], verb: str) -> None:
    if output.is_json():
        output.show_json({"entity_type": entity, "name": name, "changes": dict(changes)})
        return
    shown = ", ".join(key if value is None else f"{key}={value}" for key, value in changes.items())
    output.say(f"{verb} {shown} of {entity} {name}")
