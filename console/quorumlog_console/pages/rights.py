"""Quotas and who uses most of them, users, and access rules."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.ids import NodeId
from quorumlog_console.access import Access
from quorumlog_console.page import ask, page, render
from quorumlog_console.pages.listing import listing
from quorumlog_console.pages.rule_words import rule_row

NODE_MS = 2_000
USES = 50  # of each broker


@page
async def rights(request: Request, access: Access) -> Response:
    """Each part says on its own why it is not there: one needs other rights than the next."""
    admin = access.admin
    silent: dict[NodeId, str] = {}
    quotas, no_quotas = await ask(admin.describe_client_quotas)
    uses, no_uses = await ask(lambda: admin.describe_quota_use(max_results=USES, timeout_ms=NODE_MS, silent=silent))
    no_uses = no_uses or "; ".join(f"broker {node_id}: {why}" for node_id, why in silent.items())
    users, no_users = await ask(admin.describe_user_scram_credentials)
    rules, no_rules = await ask(admin.describe_acls)
    rows = [rule_row(one) for one in rules or ()]
    listed = listing(
        request,
        rows,
        " ".join,
        {"principal": lambda row: row.principal, "resource": lambda row: row.resource},
        "principal",
    )
    return render(
        request, "rights.html", "Quotas and ACLs", access,
        quotas=quotas or {}, no_quotas=no_quotas, uses=uses or {}, no_uses=no_uses,
        users=users or {}, no_users=no_users, listed=listed, no_rules=no_rules,
    )  # fmt: skip
