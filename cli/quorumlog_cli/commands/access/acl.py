"""`quorumlog acl`: who may do what with topics, groups and the cluster, and which rule says so."""

from __future__ import annotations

import time
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.access import acl_words as words
from quorumlog_cli.commands.access.acl_apply import apply, export
from quorumlog_cli.commands.access.acl_test import test
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.confirm import confirmed
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.messages.brokers import DescribeAclsRequest
    from quorumlog.security.acl.content import AclContent

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show, change and test who may do what (access rules)."
)
app.command()(test)
app.command()(export)
app.command()(apply)

WAIT_S = 30.0
POLL_S = 0.05

ResourcesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RESOURCE…]", help="topic:NAME, group:NAME, transactional-id:NAME, cluster; * is any name."
    ),
]
AllowOption = Annotated[
    list[str] | None, typer.Option("--allow", metavar="User:NAME", help="Who may; User:* is everybody.")
]
DenyOption = Annotated[list[str] | None, typer.Option("--deny", metavar="User:NAME", help="Who must not; it wins.")]
OperationsOption = Annotated[
    list[str] | None, typer.Option("--operation", "-O", metavar="NAME", help="read, write, alter-configs, all, …")
]
HostsOption = Annotated[
    list[str] | None, typer.Option("--host", metavar="ADDRESS", help="From this address only; no names, no networks.")
]
PrefixedOption = Annotated[
    bool, typer.Option("--prefixed", help="The names are prefixes: orders means orders, orders-eu, orders.old.")
]


@app.command()
def create(
    resources: ResourcesArgument = None,
    allow: AllowOption = None,
    deny: DenyOption = None,
    operations: OperationsOption = None,
    hosts: HostsOption = None,
    prefixed: PrefixedOption = False,
    producer: Annotated[
        bool, typer.Option("--producer", help="What a producer needs of its topics and transactional ids.")
    ] = False,
    consumer: Annotated[bool, typer.Option("--consumer", help="What a consumer needs of topics and groups.")] = False,
    idempotent: Annotated[
        bool, typer.Option("--idempotent", help="With --producer: also on the cluster, for brokers before 2.8.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return once every broker in service decides by it.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Make access rules. One that is there already stays as it is.

    Exit code 9: the cluster refused some.
    """
    output.use(output_format)
    acls = _wanted(resources or [], allow or [], deny or [], operations or [], hosts or ["*"], prefixed)
    if producer or consumer or idempotent:
        acls += _of_kinds(resources or [], allow or [], hosts or ["*"], prefixed, producer, consumer, idempotent)
    if not acls:
        raise CliError(
            Exit.USAGE,
            "this is no rule yet",
            "quorumlog acl create topic:orders --allow User:alice --operation read",
        )
    with connected(find_target(servers, profile, options)) as cluster:
        results = cluster.admin.create_acls(acls)
        refused = [(acl, one) for acl, one in zip(acls, results, strict=True) if one.error_code]
        made = [acl for acl, one in zip(acls, results, strict=True) if not one.error_code]
        if wait and made:
            _await_everywhere(cluster.admin, made)
    _show(made)
    for acl, one in refused:
        output.complain(f"{' '.join(words.row(acl))}: {one.error_message}")
    if refused:
        raise typer.Exit(Exit.PARTIAL)


@app.command("list")
def list_acls(
    resources: ResourcesArgument = None,
    principals: Annotated[
        list[str] | None, typer.Option("--principal", metavar="User:NAME", help="Only rules about it.")
    ] = None,
    match: Annotated[
        bool, typer.Option("--match", help="All that applies to these names: also prefixes, and rules of any name.")
    ] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show access rules."""
    output.use(output_format)
    filters = _filters(resources or [], principals or [], [], [], 0, 2 if match else 1)
    with connected(find_target(servers, profile, options)) as cluster:
        found = sorted({acl for one in filters for acl in cluster.admin.describe_acls(one)})
    _show(found)


@app.command()
def delete(
    resources: ResourcesArgument = None,
    allow: AllowOption = None,
    deny: DenyOption = None,
    operations: OperationsOption = None,
    hosts: HostsOption = None,
    prefixed: PrefixedOption = False,
    everything: Annotated[bool, typer.Option("--all", help="Every rule of the cluster.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Remove the rules that fit all that is named: what is not named may be anything.

    Exit code 7: no rule fits.
    """
    output.use(output_format)
    if everything == bool(resources or allow or deny or operations or hosts):
        raise CliError(Exit.USAGE, "name a resource, a principal, an operation or a host, or give --all")
    pattern_type = words.PATTERNS["prefixed" if prefixed else "literal"] if resources or prefixed else 1
    kinds = [(allow, words.PERMISSIONS["allow"]), (deny, words.PERMISSIONS["deny"])]
    filters = [
        one
        for principals, permission in kinds
        if principals
        for one in _filters(resources or [], principals, operations or [], hosts or [], permission, pattern_type)
    ] or _filters(resources or [], [], operations or [], hosts or [], 0, pattern_type)
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        from quorumlog.client.administration.acls import exactly

        found = sorted({acl for one in filters for acl in cluster.admin.describe_acls(one)})
        if not found:
            raise CliError(Exit.NOT_FOUND, "no access rule fits", "quorumlog acl list shows them all")
        if not dry_run:
            if not yes and not _confirmed(found, target.name):
                raise CliError(Exit.FAILED, "nothing was changed", "--yes skips the question")
            cluster.admin.delete_acls([exactly(acl) for acl in found])
    _show(found)
    output.say(f"{output.counted(len(found), 'rule')} {'would be' if dry_run else 'removed'}")


def _wanted(
    resources: list[str], allow: list[str], deny: list[str], operations: list[str], hosts: list[str], prefixed: bool
) -> list[AclContent]:
    """Raises CliError(USAGE)."""
    who = [(words.principal(one), words.PERMISSIONS["allow"]) for one in allow]
    who += [(words.principal(one), words.PERMISSIONS["deny"]) for one in deny]
    pattern_type = words.PATTERNS["prefixed" if prefixed else "literal"]
    what = [words.operation(one) for one in operations]
    return list(words.rules([words.resource(one) for one in resources], what, who, hosts, pattern_type))


def _of_kinds(
    resources: list[str],
    allow: list[str],
    hosts: list[str],
    prefixed: bool,
    producer: bool,
    consumer: bool,
    idempotent: bool,
) -> list[AclContent]:
    """What kafka-acls adds by --producer, --consumer and --idempotent. Raises CliError(USAGE)."""
    from quorumlog.security.authorizer import CLUSTER_NAME, Operation, ResourceType

    who = [(words.principal(one), words.PERMISSIONS["allow"]) for one in allow]
    if not who or not resources:
        raise CliError(Exit.USAGE, "--producer and --consumer need resources and --allow")
    pattern_type = words.PATTERNS["prefixed" if prefixed else "literal"]
    found: list[AclContent] = []
    for text in resources:
        kind, name = words.resource(text)
        kinds = [(producer, words.PRODUCER), (consumer, words.CONSUMER)]
        what = dict.fromkeys(one for wanted, table in kinds if wanted for one in table.get(ResourceType(kind), ()))
        if not what:
            raise CliError(Exit.USAGE, f"{text} is nothing that these options are about: name topics, groups and ids")
        found += words.rules([(kind, name)], list(what), who, hosts, pattern_type)
    if idempotent:
        cluster = [(int(ResourceType.CLUSTER), CLUSTER_NAME)]
        found += words.rules(cluster, [Operation.IDEMPOTENT_WRITE], who, hosts, pattern_type)
    return found


def _filters(
    resources: list[str],
    principals: list[str],
    operations: list[str],
    hosts: list[str],
    permission: int,
    pattern_type: int,
) -> list[DescribeAclsRequest]:
    """An empty list matches anything. permission: 0: any. Raises CliError(USAGE)."""
    from quorumlog.messages.brokers import DescribeAclsRequest
    from quorumlog.security.acl.content import ANY

    resource_filters: list[tuple[int, str | None]] = [*map(words.resource, resources)] or [(ANY, None)]
    principal_filters: list[str | None] = [words.principal(one) for one in principals] or [None]
    host_filters: list[str | None] = [*hosts] or [None]
    operation_filters = [int(words.operation(one)) for one in operations] or [ANY]
    return [
        DescribeAclsRequest(
            resource_type_filter=kind,
            resource_name_filter=name,
            pattern_type_filter=pattern_type,
            principal_filter=who,
            host_filter=host,
            operation=what,
            permission_type=permission or ANY,
        )
        for (kind, name), who, host, what in product(
            resource_filters, principal_filters, host_filters, operation_filters
        )
    ]


def _await_everywhere(admin: Any, made: list[AclContent]) -> None:
    """Until each broker in service has the rules. Raises CliError(TIMED_OUT)."""
    from quorumlog.client.errors import RequestFailed
    from quorumlog.rpc.transport import RpcError

    deadline = time.monotonic() + WAIT_S
    while True:
        behind = []
        for broker in admin.describe_cluster().brokers:
            try:
                there = set(admin.describe_acls(node_id=broker.node_id))
            except (RpcError, RequestFailed):
                there = set()
            if not there.issuperset(made):
                behind.append(broker.node_id)
        if not behind:
            return
        if time.monotonic() > deadline:
            raise CliError(
                Exit.TIMED_OUT, f"after {WAIT_S:.0f} s the rules are made, but not known to brokers {behind} yet"
            )
        time.sleep(POLL_S)


def _confirmed(found: list[AclContent], cluster: str) -> bool:
    if not output.is_json():
        output.show_table(words.COLUMNS, [words.row(acl) for acl in found])
    return confirmed(f"Remove {output.counted(len(found), 'rule')} of {cluster}?")


def _show(acls: list[AclContent]) -> None:
    if output.is_json():
        output.show_json([words.as_document(acl) for acl in acls])
    else:
        output.show_table(words.COLUMNS, [words.row(acl) for acl in acls])
