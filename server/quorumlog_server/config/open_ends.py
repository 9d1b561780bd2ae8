"""What is legal and leaves something open, or does not do what its writer may think: one sentence for each.

Nothing here is refused but Kerberos: a file that has started before starts (decision 132).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quorumlog.rpc.transport import Listener
from quorumlog.settings.rights import AUTHORIZER
from quorumlog_server.config.properties import ConfigError

if TYPE_CHECKING:
    from quorumlog_server.config.listener_security import ListenerSecurity

JAAS = "sasl.jaas.config"
MAX_TOLD = 5  # users of a line
_RULES = ("super.users", "allow.everyone.if.no.acl.found", "quorumlog.authorizer.report.only")


def warnings_of_rights(
    values: Mapping[str, str], listeners: Sequence[Listener], security: Mapping[str, ListenerSecurity]
) -> list[str]:
    if not values.get("authorizer.class.name", "").strip():
        idle = sorted({*_RULES} & {*values})
        told = [f"no effect without authorizer.class.name: {', '.join(idle)}"] if idle else []
        asking = [one.name for one in listeners if not one.internal and security[one.name].authenticates]
        return told + ([_without_rules(asking[0])] if asking else [])
    if not values.get("super.users", "").strip():
        return ["super.users is empty: only who has ALTER on the cluster by an access rule can change access rules"]
    return []


def _without_rules(listener: str) -> str:
    return (
        f"{listener} asks its clients who they are, and there are no access rules: whoever logs in may read, change "
        "and delete everything, users and their passwords, too. Set "
        f"authorizer.class.name={AUTHORIZER} and super.users on every node; with "
        "quorumlog.authorizer.report.only=true at first nobody is stopped"
    )


def warnings_of_users(values: Mapping[str, str]) -> list[str]:
    """Of lines for JAAS, whose users cannot log in here. Raises ConfigError for a login module of Kerberos."""
    found = []
    for key, text in values.items():
        if key != JAAS and not key.endswith(f".{JAAS}"):
            continue
        from quorumlog.security.sasl.jaas import JaasError, Kerberos, read_jaas

        try:
            entry = read_jaas(text)
        except Kerberos:
            raise ConfigError(
                f"{key} names a login module of Kerberos (GSSAPI), which is not supported: remove it, and let clients "
                "log in by SCRAM-SHA-512 (sasl.enabled.mechanisms)"
            ) from None
        except JaasError:
            continue  # nothing reads it
        if users := sorted(name.removeprefix("user_") for name in entry.options if name.startswith("user_")):
            found.append(_of_file(key, users))
    return found


def _of_file(key: str, users: list[str]) -> str:
    told = ", ".join(users[:MAX_TOLD]) + (f" and {len(users) - MAX_TOLD} more" if len(users) > MAX_TOLD else "")
    return (
        f"{key}: {told} cannot log in by this line: users are in the cluster's metadata, where a password that is "
        "changed counts on every node. Make each by quorumlog user create NAME --password file:PATH"
    )
