"""What decides about a right, in words for the audit log."""

from __future__ import annotations

from quorumlog.security.acl.authorizer import RuleAuthorizer
from quorumlog.security.acl.content import words_of
from quorumlog.security.acl.report_only import ReportOnly
from quorumlog.security.audit import Why, nothing_decides
from quorumlog.security.authorizer import Authorizer
from quorumlog.security.principal import Principal
from quorumlog.security.required.need import Need


def why_of(authorizer: Authorizer) -> Why:
    if not isinstance(authorizer, RuleAuthorizer | ReportOnly):
        return nothing_decides
    explain = authorizer.explain

    def why(principal: Principal, host: str, need: Need, name: str) -> tuple[bool, str]:
        verdict = explain(principal, host, need.operation, need.resource_type, name)
        return verdict.allowed, words_of(verdict)

    return why
