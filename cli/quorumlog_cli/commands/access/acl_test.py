"""`quorumlog acl test`: whether a principal may do something, and which rule says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.commands.access import acl_words as words
from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.security.acl.authorizer import RuleAuthorizer, Verdict

DENIED = Exit.NOT_AUTHORISED


def test(
    who: Annotated[str, typer.Argument(metavar="PRINCIPAL", help="User:NAME.")],
    what: Annotated[str, typer.Argument(metavar="OPERATION", help="read, write, alter-configs, …")],
    about: Annotated[str, typer.Argument(metavar="RESOURCE", help="topic:NAME, group:NAME, cluster, …")],
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="Where the client is; without it, rules of one host do not fit."
        ),
    ] = "",
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Say whether a principal may do something, and which access rule decides.

    The answer follows from the rules, super users and settings that a broker has now. Exit code 8: it may not.
    """
    output.use(output_format)
    from quorumlog.security.principal import parse_principal

    principal, operation = parse_principal(words.principal(who)), words.operation(what)
    if operation == words.OPERATIONS["all"]:
        raise CliError(Exit.USAGE, "all is for rules; name one operation", "quorumlog acl test User:a read topic:x")
    kind, name = words.resource(about)
    with connected(find_target(servers, profile, options)) as cluster:
        authorizer = _authorizer(cluster.admin)
    verdict = authorizer.explain(principal, host, operation, words.TYPES[_type_word(kind)], name)
    _tell(verdict, who, what, about)
    if not verdict.allowed:
        raise typer.Exit(DENIED)


def _authorizer(admin: Any) -> RuleAuthorizer:
    """What the brokers decide by."""
    from quorumlog.messages.metadata_records import AccessControlEntryRecord
    from quorumlog.security.acl.authorizer import RuleAuthorizer
    from quorumlog.security.acl.index import RuleIndex
    from quorumlog.settings.rights import parse_super_users

    index = RuleIndex()
    for number, acl in enumerate(admin.describe_acls()):
        index.add(AccessControlEntryRecord(id=number.to_bytes(16, "big"), **acl._asdict()))
    broker = admin.describe_cluster().brokers[0].node_id
    said = {one.name: one.value or "" for one in admin.describe_configs(str(broker), resource_type=4).configs}
    everyone = said.get("allow.everyone.if.no.acl.found") == "true"
    return RuleAuthorizer(index, parse_super_users(said.get("super.users", "")), everyone)


def _type_word(kind: int) -> str:
    return next(word for word, one in words.TYPES.items() if one == kind)


def _tell(verdict: Verdict, who: str, what: str, about: str) -> None:
    from quorumlog.security.acl.content import content_of_rule, words_of

    if output.is_json():
        document = None if verdict.rule is None else words.as_document(content_of_rule(verdict.rule))
        output.show_json({"allowed": verdict.allowed, "why": verdict.why.value, "rule": document})
        return
    print(f"{'allowed' if verdict.allowed else 'denied'}: {who} {what} {about}")
    print(f"because {words_of(verdict)}")
