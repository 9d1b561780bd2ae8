"""What `acl`, `user` and `quota` print."""

from __future__ import annotations

from typing import Annotated, TypedDict


class Rule(TypedDict):
    """resource: such as topic:orders, or cluster."""

    resource: str
    pattern: str
    principal: str
    permission: str
    operation: str
    host: str


class ExportedRules(TypedDict):
    """With - as file the rules themselves are printed, as `acl apply` reads them."""

    file: str
    rules: Annotated[int, "how many are in the file"]


class RuleFile(TypedDict):
    version: int
    acls: list[Rule]


class RulePlan(TypedDict):
    dry_run: bool
    new: list[Rule]
    removed: list[Rule]


class Verdict(TypedDict):
    allowed: bool
    why: str
    rule: Annotated[Rule | None, "the one that decided"]


class Credential(TypedDict):
    user: str
    mechanism: str
    iterations: int


class Credentials(TypedDict):
    credentials: list[Credential]


class CredentialsSet(TypedDict):
    user: str
    mechanisms: list[str]
    iterations: int


class CredentialsDeleted(TypedDict):
    user: str
    deleted: Annotated[list[str], "mechanisms"]


class QuotasSet(TypedDict):
    """entity: its parts by type; null stands for all without a quota of their own."""

    entity: dict[str, str | None]
    quotas: dict[str, float | None]
    dry_run: bool


class Quota(TypedDict):
    entity: dict[str, str | None]
    quota: str
    value: float


class Quotas(TypedDict):
    quotas: list[Quota]


class QuotasRemoved(TypedDict):
    entity: dict[str, str | None]
    removed: list[str]


class QuotaUse(TypedDict):
    broker: int
    user: str | None
    client_id: str | None
    quota: str
    rate: Annotated[float, "a second"]
    limit: float
    used_percent: float
    throttled_ms: float


class QuotaUses(TypedDict):
    """exempt_percentage, silent: by broker; silent: why it has not answered."""

    uses: list[QuotaUse]
    exempt_percentage: dict[str, float]
    silent: dict[str, str]
