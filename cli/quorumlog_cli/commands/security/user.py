"""`quorumlog user`: who can log in with a password (SCRAM)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.confirm import confirmed
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption
from quorumlog_cli.terminal.password import PasswordFileOption, PasswordOption, read_password

if TYPE_CHECKING:
    from quorumlog.client.administration.users import Change, UserOutcome
    from quorumlog.security.sasl.scram_mechanism import ScramMechanism

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Create users who log in with a password; change and delete them."
)
DEFAULT_MECHANISM = "SCRAM-SHA-512"
DEFAULT_ITERATIONS = 4096

NameArgument = Annotated[str, typer.Argument(metavar="USER", help="Its name, without User:")]
MechanismsOption = Annotated[
    list[str] | None,
    typer.Option("--mechanism", "-m", metavar="NAME", help="SCRAM-SHA-256 or SCRAM-SHA-512; may be repeated."),
]
IterationsOption = Annotated[int, typer.Option(min=4096, max=16_384, help="Of the hash: the cost of one guess.")]


@app.command()
def create(
    name: NameArgument,
    mechanism: MechanismsOption = None,
    password: PasswordOption = None,
    password_file: PasswordFileOption = None,
    iterations: IterationsOption = DEFAULT_ITERATIONS,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Create a user with a password.

    What is sent is as good as the password, so brokers take it over TLS or from their own machine only.

    Exit code 6: the user has a password already; see: user passwd.
    """
    output.use(output_format)
    mechanisms = _mechanisms(mechanism or [DEFAULT_MECHANISM])
    with connected(find_target(servers, profile, options)) as cluster:
        if name in cluster.admin.describe_user_scram_credentials([name]):
            text = f"user {name} has a password already"
            raise CliError(Exit.PRECONDITION, text, "quorumlog user passwd changes it")
        _set_password(cluster, name, read_password(name, password, password_file), mechanisms, iterations)
    _tell_set(f"user {name} can log in with", name, mechanisms, iterations)


@app.command("list")
def list_(
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Show the users who have a password."""
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        users = cluster.admin.describe_user_scram_credentials()
    rows = [
        {"user": name, "mechanism": mechanism.title, "iterations": iterations}
        for name, found in sorted(users.items())
        for mechanism, iterations in sorted(found.items())
    ]
    output.show(("USER", "MECHANISM", "ITERATIONS"), [list(row.values()) for row in rows], {"credentials": rows})


@app.command()
def passwd(
    name: NameArgument,
    password: PasswordOption = None,
    password_file: PasswordFileOption = None,
    iterations: IterationsOption = DEFAULT_ITERATIONS,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Change the password of a user, for each mechanism that it has. Connections that are open stay open.

    Exit code 7: there is no such user.
    """
    output.use(output_format)
    with connected(find_target(servers, profile, options)) as cluster:
        mechanisms = sorted(_found(cluster, name))
        _set_password(cluster, name, read_password(name, password, password_file), mechanisms, iterations)
    _tell_set(f"user {name} has a new password for", name, mechanisms, iterations)


@app.command()
def delete(
    name: NameArgument,
    mechanism: MechanismsOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Delete the password of a user, for all mechanisms or for some. Its access rules and quotas stay.

    Exit code 7: there is no such user.
    """
    from quorumlog.client.administration.users import DeleteCredential

    output.use(output_format)
    target = find_target(servers, profile, options)
    with connected(target) as cluster:
        found = _found(cluster, name)
        chosen = _mechanisms(mechanism) if mechanism else sorted(found)
        if missing := [one.title for one in chosen if one not in found]:
            raise CliError(Exit.NOT_FOUND, f"user {name} has no credential for {' and '.join(missing)}")
        if not yes and not confirmed(f"Delete the password of {name} in {target.name}?"):
            raise CliError(Exit.FAILED, "nothing was changed", "--yes skips the question")
        _check(cluster.admin.alter_user_scram_credentials([DeleteCredential(name, one) for one in chosen]))
    titles = [one.title for one in chosen]
    document = {"user": name, "deleted": titles}
    output.tell(f"user {name} cannot log in with {' and '.join(titles)} any more", document)


def _set_password(cluster: Any, name: str, secret: str, mechanisms: Iterable[ScramMechanism], iterations: int) -> None:
    from quorumlog.client.administration.users import SetPassword

    changes = [SetPassword(name, secret, one, iterations) for one in mechanisms]
    _check(cluster.admin.alter_user_scram_credentials(changes))


def _tell_set(what: str, name: str, mechanisms: Iterable[ScramMechanism], iterations: int) -> None:
    titles = [one.title for one in mechanisms]
    document = {"user": name, "mechanisms": titles, "iterations": iterations}
    output.tell(f"{what} {' and '.join(titles)}", document)


def _found(cluster: Any, name: str) -> dict[ScramMechanism, int]:
    users: dict[str, dict[ScramMechanism, int]] = cluster.admin.describe_user_scram_credentials([name])
    if name not in users:
        raise CliError(Exit.NOT_FOUND, f"there is no user {name}", "quorumlog user list")
    return users[name]


def _mechanisms(titles: Iterable[str]) -> list[ScramMechanism]:
    from quorumlog.security.sasl.scram_mechanism import BY_TITLE

    found = []
    for title in titles:
        if title.upper() not in BY_TITLE:
            raise CliError(Exit.USAGE, f"--mechanism {title}: it is {' or '.join(BY_TITLE)}")
        found.append(BY_TITLE[title.upper()])
    return sorted(set(found))


def _check(outcomes: dict[Change, UserOutcome]) -> None:
    from quorumlog.client.errors import RequestFailed

    for change, outcome in outcomes.items():
        if outcome.error:
            raise RequestFailed(outcome.error, f"user {change.user}, {change.mechanism.title}: {outcome.message}")
