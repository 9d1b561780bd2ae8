"""`quorumlog quota`: how much clients may use, by user, client id and address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.client.administration.quotas import QuotaOutcome
    from quorumlog.security.quota.entity import Entity

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show and change quotas of users, client ids and addresses."
)
TYPES = ("user", "client-id", "ip")
DEFAULT = "(default)"  # as tables show it; JSON has null
ALL = "(all)"  # likewise

UserOption = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Of this user.")]
ClientOption = Annotated[str | None, typer.Option("--client-id", metavar="ID", help="Of this client id.")]
AddressOption = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="Of this address.")]
DefaultsOption = Annotated[
    list[str] | None,
    typer.Option("--default", metavar="TYPE", help="Of every user, client-id or ip without its own; may be repeated."),
]


@app.command("set")
def set_(
    values: Annotated[list[str], typer.Argument(metavar="QUOTA=VALUE…")],
    user: UserOption = None,
    client_id: ClientOption = None,
    ip: AddressOption = None,
    default: DefaultsOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check it, and change nothing.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Set quotas of a user, a client id, both, or an address.

    Of users and client ids: producer_byte_rate, consumer_byte_rate (bytes/s), request_percentage,
    controller_mutation_rate (partitions/s). Of addresses: connection_creation_rate (connections/s).

    Each broker counts for itself, and the active controller for controller_mutation_rate. The most specific quota
    counts: user and client id, user, client id, defaults. 100 of request_percentage is the whole time of a broker.
    """
    output.use(output_format)
    entity = _entity(user, client_id, ip, default)
    wanted = dict(_assignment(text) for text in values)
    _alter(entity, wanted, dry_run, find_target(servers, profile, options))
    verb = "would be set" if dry_run else "are set"
    text = f"quotas of {_shown(entity)} {verb}: {', '.join(f'{key}={_figure(value)}' for key, value in wanted.items())}"
    output.tell(text, {"entity": entity, "quotas": wanted, "dry_run": dry_run})


@app.command("list")
def list_(
    user: UserOption = None,
    client_id: ClientOption = None,
    ip: AddressOption = None,
    default: DefaultsOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Only of these types, and of no others with them.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show quotas: all of them, or those whose user, client id or address is the given one."""
    output.use(output_format)
    wanted = _entity(user, client_id, ip, default, needed=False)
    with connected(find_target(servers, profile, options)) as cluster:
        found = cluster.admin.describe_client_quotas(dict(wanted), strict=strict)
    rows: list[dict[str, Any]] = [
        {"entity": dict(entity), "quota": key, "value": value}
        for entity, values in sorted(found.items(), key=lambda item: _order(item[0]))
        for key, value in sorted(values.items())
    ]
    cells = [[*_cells(row["entity"]), row["quota"], _figure(row["value"])] for row in rows]
    output.show(("USER", "CLIENT ID", "IP", "QUOTA", "VALUE"), cells, {"quotas": rows})


@app.command()
def top(
    count: Annotated[int, typer.Option("--count", min=1, max=1_000, help="So many of all brokers.")] = 20,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show who uses most of its quota: bytes and time, on each broker, in the last eleven seconds.

    What a broker has not counted for that long it has forgotten. Exit code 0 also where a broker does not answer, which
    is told.
    """
    output.use(output_format)
    silent: dict[int, str] = {}
    with connected(find_target(servers, profile, options)) as cluster:
        answers = cluster.admin.describe_quota_use(max_results=count, silent=silent)
    uses = [(node_id, one) for node_id, answer in answers.items() for one in answer.uses]
    uses.sort(key=lambda found: (-found[1].rate / found[1].quota, found[0]))
    rows: list[dict[str, Any]] = [
        {
            "broker": node_id,
            "user": one.user,
            "client_id": one.client_id,
            "quota": one.key,
            "rate": one.rate,
            "limit": one.quota,
            "used_percent": 100 * one.rate / one.quota,
            "throttled_ms": one.throttled_ms,
        }
        for node_id, one in uses[:count]
    ]
    cells = [
        [
            str(row["broker"]),
            _of_all(row["user"]),
            _of_all(row["client_id"]),
            row["quota"],
            f"{row['rate']:.4g}",
            _figure(row["limit"]),
            f"{row['used_percent']:.0f} %",
            f"{row['throttled_ms'] / 1000:.1f} s",
        ]
        for row in rows
    ]
    header = ("BROKER", "USER", "CLIENT ID", "QUOTA", "A SECOND", "LIMIT", "USED", "HELD BACK")
    exempt = {str(node_id): answer.exempt_percentage for node_id, answer in answers.items()}
    unheard = {str(node_id): reason for node_id, reason in silent.items()}
    for node_id, reason in silent.items():
        output.complain(f"broker {node_id} has not answered: {reason}")
    output.show(header, cells, {"uses": rows, "exempt_percentage": exempt, "silent": unheard})


@app.command()
def delete(
    quotas: Annotated[list[str] | None, typer.Argument(metavar="[QUOTA…]")] = None,
    user: UserOption = None,
    client_id: ClientOption = None,
    ip: AddressOption = None,
    default: DefaultsOption = None,
    all_quotas: Annotated[bool, typer.Option("--all", help="All that this entity has.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Remove quotas of a user, a client id, both, or an address. Then the next less specific one counts.

    Exit code 7: it has none of them.
    """
    output.use(output_format)
    entity = _entity(user, client_id, ip, default)
    if all_quotas is bool(quotas):
        raise CliError(Exit.USAGE, "name the quotas to remove, or say --all")
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        found = cluster.admin.describe_client_quotas(dict(entity), strict=True)
    has = next(iter(found.values()), {})
    chosen = sorted(has) if all_quotas else [key for key in quotas or () if key in has]
    if not chosen:
        raise CliError(Exit.NOT_FOUND, f"{_shown(entity)} has no such quota", "quorumlog quota list")
    _alter(entity, dict.fromkeys(chosen), False, target)
    output.tell(f"removed quotas of {_shown(entity)}: {', '.join(chosen)}", {"entity": entity, "removed": chosen})


def _figure(value: float) -> str:
    return f"{value:.15g}"


def _alter(entity: dict[str, str | None], values: dict[str, Any], dry_run: bool, target: Any) -> None:
    from quorumlog.client.administration.quotas import QuotaChange
    from quorumlog.client.errors import RequestFailed

    with connected(target) as cluster:
        outcomes: dict[Entity, QuotaOutcome] = cluster.admin.alter_client_quotas(
            [QuotaChange(entity, values)], validate_only=dry_run
        )
    for outcome in outcomes.values():
        if outcome.error:
            raise RequestFailed(outcome.error, f"{_shown(entity)}: {outcome.message}")


def _entity(
    user: str | None, client_id: str | None, ip: str | None, defaults: list[str] | None, *, needed: bool = True
) -> dict[str, str | None]:
    from quorumlog.security.quota.entity import BadQuota, entity_of

    given = [(kind, name) for kind, name in zip(TYPES, (user, client_id, ip), strict=True) if name is not None]
    parts = [*given, *((kind, None) for kind in defaults or ())]
    if not parts and not needed:
        return {}
    try:
        return dict(entity_of(parts))
    except BadQuota as error:
        raise CliError(Exit.USAGE, str(error), "--user, --client-id, --ip or --default TYPE says it") from error


def _assignment(text: str) -> tuple[str, float]:
    key, found, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError:
        wrong = "there is no =" if not found else f"{value!r} is no number"
        raise CliError(Exit.USAGE, f"{text}: {wrong}; write QUOTA=VALUE") from None


def _order(entity: Entity) -> list[tuple[str, bool, str]]:
    return [(kind, name is not None, name or "") for kind, name in entity]


def _cells(entity: dict[str, str | None]) -> list[str]:
    return [_name(entity[kind]) if kind in entity else output.NONE for kind in TYPES]


def _name(name: str | None) -> str:
    """A name that looks like the default's place, or like an absent one, is quoted."""
    if name is None:
        return DEFAULT
    return repr(name) if name in (DEFAULT, *output.NOTHING) else name


def _of_all(name: str | None) -> str:
    """Of a bucket: all users, or all client ids, share it."""
    if name is None:
        return ALL
    return repr(name) if name in (ALL, "", *output.NOTHING) else name


def _shown(entity: dict[str, str | None]) -> str:
    return " and ".join(f"the default {kind}" if name is None else f"{kind} {name}" for kind, name in entity.items())
