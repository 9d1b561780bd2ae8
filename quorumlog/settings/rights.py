"""Who may do what: whether access rules are enforced, and who is above them."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.settings.key import NodeKey, flag, setting

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"  # Kafka's name of the only one there is


def parse_authorizer(text: str) -> str:
    if text.strip() not in ("", AUTHORIZER):
        raise ValueError(
            f"{text.strip()!r}: no class is loaded; write {AUTHORIZER}, or nothing to have no access rules"
        )
    return text.strip()


def parse_super_users(text: str) -> tuple[str, ...]:
    """TYPE:NAME, divided by `;`, since a name from a certificate has commas (Kafka's StandardAuthorizer)."""
    users = tuple(one.strip() for one in text.split(";") if one.strip())
    for one in users:
        kind, _, name = one.partition(":")
        if kind != "User" or not name:
            raise ValueError(f"{one!r} is no principal of a client; write User:NAME, and divide several by ;")
    return users


@dataclass(frozen=True, slots=True, kw_only=True)
class RightsConfig:
    """super_users: as TYPE:NAME."""

    authorizer: str = setting(
        NodeKey(
            name="authorizer.class.name",
            parse=parse_authorizer,
            default="",
            doc=f"{AUTHORIZER}: access rules decide what clients may do; empty: everybody may do everything, and there "
            "are no rules. The same on every node.",
        )
    )
    super_users: tuple[str, ...] = setting(
        NodeKey(
            name="super.users",
            parse=parse_super_users,
            default="",
            doc="Principals that may do everything, whatever rules say: User:NAME, divided by semicolons.",
        )
    )
    allow_everyone: bool = setting(
        flag(
            "allow.everyone.if.no.acl.found",
            False,
            "Everybody may do everything with a resource whose name no access rule of anybody matches.",
        )
    )
    report_only: bool = setting(
        flag(
            "quorumlog.authorizer.report.only",
            False,
            "Log what access rules would refuse, and refuse nothing: to try them before they count. Not in Kafka.",
        )
    )

    @property
    def on(self) -> bool:
        return bool(self.authorizer)
