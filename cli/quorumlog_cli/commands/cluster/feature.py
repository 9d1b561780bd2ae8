"""`quorumlog feature`: the levels of features that the cluster uses, and which levels its nodes support."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.messages.admin import DescribeFeaturesResponse, NodeFeatures

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show and change the levels of features, after an upgrade."
)


class UpgradeType(IntEnum):
    """Kafka's numbers."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


LevelsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME=LEVEL…]", help="E.g. metadata.version=3.", show_default=False)
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Let the controller check the change, but change nothing.")
]


@app.command()
def describe(
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the level of each feature that is in force, and what each node supports."""
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        document = _document(cluster.admin.describe_features())
    if output.is_json():
        output.show_json(document)
        return
    rows = [
        [one["name"], one["finalized_level"], f"{one['min_level']} to {one['max_level']}"]
        for one in document["features"]
    ]
    output.show_table(("FEATURE", "LEVEL", "SUPPORTED HERE"), rows)
    print()
    nodes = [
        [node["node_id"], role, one["name"], f"{one['min_level']} to {one['max_level']}"]
        for role in ("broker", "controller")
        for node in document[f"{role}s"]
        for one in node["features"]
    ]
    output.show_table(("NODE", "ROLE", "FEATURE", "SUPPORTS"), nodes)


@app.command()
def upgrade(
    levels: LevelsArgument = None,
    to_latest: Annotated[
        bool,
        typer.Option("--latest", help="All but kraft.version, to the highest that the asked broker supports."),
    ] = False,
    dry_run: DryRunOption = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Raise levels, once every node runs software that supports them.

    Nodes of older software cannot come back after that. All levels of one command change, or none does.
    """
    if to_latest == bool(levels):
        raise CliError(Exit.USAGE, "name the levels, e.g. metadata.version=3, or give --latest")
    given = _levels(levels or [])
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        found = cluster.admin.describe_features()
        wanted = _latest(found) if to_latest else given
        _update(cluster.admin, found, wanted, UpgradeType.UPGRADE, dry_run)


@app.command()
def downgrade(
    levels: LevelsArgument = None,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Also where metadata is lost, if that is defined.")] = False,
    dry_run: DryRunOption = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Lower levels, if the cluster's metadata holds nothing that the lower level cannot express."""
    if not levels:
        raise CliError(Exit.USAGE, "name the levels, e.g. metadata.version=2")
    wanted = _levels(levels)
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
        _update(cluster.admin, cluster.admin.describe_features(), wanted, kind, dry_run)


@app.command("version-mapping")
def version_mapping(
    release: Annotated[
        int | None,
        typer.Option("--release-version", metavar="LEVEL", help="Of metadata.version; without it: the highest."),
    ] = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show which level of each feature goes with a level of metadata.version, as this software knows them.

    Asks no cluster. As `kafka-features version-mapping`; a release of Kafka is a level of metadata.version here.
    """
    from quorumlog_quorum.metadata.features import IMPLIED_LEVEL, LATEST_LEVEL, METADATA_VERSION, mapped_levels

    output.use(output_format)
    level = LATEST_LEVEL if release is None else release
    if not IMPLIED_LEVEL <= level <= LATEST_LEVEL:
        supported = ", ".join(map(str, range(IMPLIED_LEVEL, LATEST_LEVEL + 1)))
        message = f"Unknown {METADATA_VERSION} '{level}'. Supported {METADATA_VERSION} are: {supported}"
        raise CliError(Exit.USAGE, message, "newer levels need newer software: quorumlog version shows which this is")
    levels = mapped_levels(level)
    output.show_lines(
        [f"{name}={found}" for name, found in levels.items()],
        {"metadata_version": level, "features": [{"name": name, "level": found} for name, found in levels.items()]},
    )


@app.command()
def dependencies(
    feature: Annotated[
        list[str] | None,
        typer.Option("--feature", metavar="NAME=LEVEL", help="A feature and a level of it; may be repeated."),
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="[NAME=LEVEL…]", show_default=False)] = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show which levels of other features a level needs in force, as this software knows them.

    Asks no cluster. As `kafka-features feature-dependencies`, which reads one level behind each --feature; here more
    may follow.
    """
    output.use(output_format)
    asked = [*(feature or []), *(more or [])]
    if not asked:
        raise CliError(Exit.USAGE, "name a level, e.g. --feature joint.version=2")
    found = [_dependencies(text) for text in asked]
    output.show_lines([line for one in found for line in _dependency_lines(one)], {"features": found})


def _dependencies(text: str) -> dict[str, Any]:
    """Raises CliError(USAGE), in the words of Kafka's tool."""
    from quorumlog_quorum.metadata.features import KRAFT_VERSIONS, METADATA_VERSION, SUPPORTED, as_shown, needs

    name, equals, number = text.rpartition("=")
    ranges = {one.name: as_shown(one) for one in (*SUPPORTED, KRAFT_VERSIONS)}
    if not equals:
        raise CliError(Exit.USAGE, f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        level = int(number)
    except ValueError:
        problem = f"Can't parse feature=level string {text}: unable to parse {number} as a short."
        raise CliError(Exit.USAGE, problem, "a level is a whole number, e.g. joint.version=2") from None
    if name not in ranges:
        raise CliError(Exit.USAGE, f"Unknown feature: {name}", f"this software has {', '.join(sorted(ranges))}")
    supported = ranges[name]
    if not supported.min_level <= level <= supported.max_level:
        unknown = f"Unknown {name} {level}"
        problem = unknown if name == METADATA_VERSION else f"No feature:{name} with feature level {level}"
        raise CliError(Exit.USAGE, problem, f"its levels are {supported.min_level} to {supported.max_level}")
    required = [{"name": other, "level": needed} for other, needed in needs(name, level).items()]
    return {"name": name, "level": level, "requires": required}


def _dependency_lines(found: dict[str, Any]) -> list[str]:
    if not found["requires"]:
        return [f"{found['name']}={found['level']} has no dependencies."]
    needed = [f"    {one['name']}={one['level']}" for one in found["requires"]]
    return [f"{found['name']}={found['level']} requires:", *needed]


def _latest(found: DescribeFeaturesResponse) -> dict[str, int]:
    """kraft.version is asked for by name: it changes what the nodes' configurations need, and never falls again."""
    return {one.name: one.max_level for one in found.features if one.name != "kraft.version"}


def _update(
    admin: Any, found: DescribeFeaturesResponse, wanted: dict[str, int], kind: UpgradeType, dry_run: bool
) -> None:
    from quorumlog.messages.admin import FeatureUpdate

    updates = [FeatureUpdate(name=name, level=level, upgrade_type=kind) for name, level in wanted.items()]
    admin.update_features(updates, validate_only=dry_run)
    before = {one.name: one.finalized_level for one in found.features}
    if output.is_json():
        changes = [{"name": name, "from": before.get(name, 0), "to": level} for name, level in wanted.items()]
        output.show_json({"dry_run": dry_run, "changes": changes})
        return
    for name, level in wanted.items():
        if before.get(name, 0) == level:
            output.say(f"{name} is at level {level} already")
        else:
            verb = "could go" if dry_run else "went"
            output.say(f"{name} {verb} from level {before.get(name, 0)} to {level}")


def _levels(given: list[str]) -> dict[str, int]:
    """Raises CliError(USAGE)."""
    levels: dict[str, int] = {}
    for text in given:
        name, _, level = text.rpartition("=")
        if not name or not (level.isascii() and level.isdigit()):
            raise CliError(Exit.USAGE, f"{text!r} is not NAME=LEVEL with a number as level, e.g. metadata.version=3")
        if name in levels:
            raise CliError(Exit.USAGE, f"{name} is given twice")
        levels[name] = int(level)
    return levels


def _document(found: DescribeFeaturesResponse) -> dict[str, Any]:
    return {
        "epoch": found.epoch,
        "features": [
            {
                "name": one.name,
                "finalized_level": one.finalized_level,
                "min_level": one.min_level,
                "max_level": one.max_level,
            }
            for one in found.features
        ],
        "brokers": [_node(node) for node in found.brokers],
        "controllers": [_node(node) for node in found.controllers],
    }


def _node(node: NodeFeatures) -> dict[str, Any]:
    ranges = [{"name": one.name, "min_level": one.min_level, "max_level": one.max_level} for one in node.features]
    return {"node_id": node.node_id, "features": ranges}
