"""CreateAcls and DeleteAcls: access rules come and go. Sources: KIP-11, KIP-290, Kafka's AclControlManager.

- All rules of a request that are accepted are written in one batch. A refused one is told by itself.
- A rule that is there already, or twice in the request, is accepted and not written again.
- What two filters match is removed once and told for both.
- Requests run one after the other, so that what one has found is still there when it writes.
- Where no authorizer is on, rules are refused: nobody would enforce them.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.brokers import (
    AclFilterResult,
    AclResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    MatchingAcl,
)
from quorumlog.messages.metadata_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from quorumlog.security.acl.content import AclContent, check_filter, checked, matches, only_match
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.engine.draft import WORK_OF_A_RECORD, Draft
from quorumlog_quorum.controller.engine.limits import MAX_ACLS_PER_REQUEST
from quorumlog_quorum.metadata.features import ACCESS_LEVEL

WORK_OF_A_RULE = 3  # comparing it with a filter, or answering for it; units are those of Draft
MAX_TRIES = 3  # to make a batch while no credential and no quota changes; the last one does not pause


def create_acls(draft: Draft, request: CreateAclsRequest) -> Sliced[CreateAclsResponse]:
    """Raises ApiError: SECURITY_DISABLED, UNSUPPORTED_VERSION, POLICY_VIOLATION for too many."""
    _check_on(draft)
    if len(request.creations) > MAX_ACLS_PER_REQUEST:
        text = f"{len(request.creations)} access rules in a request, limit {MAX_ACLS_PER_REQUEST}; send several"
        raise ApiError(ErrorCode.POLICY_VIOLATION, text)
    there = draft.image.rule_ids
    new: dict[AclContent, AccessControlEntryRecord] = {}
    results = []
    for creation in request.creations:
        yield from _spent(draft)
        try:
            content = checked(creation)
        except ApiError as error:
            results.append(AclResult(error_code=error.code, error_message=error.message))
            continue
        if content not in there and content not in new:
            new[content] = AccessControlEntryRecord(id=draft.state.new_rule_id(), **content._asdict())
        results.append(AclResult())
    yield from _write(draft, list(new.values()))
    return CreateAclsResponse(results=tuple(results))


def delete_acls(draft: Draft, request: DeleteAclsRequest) -> Sliced[DeleteAclsResponse]:
    """Raises ApiError: SECURITY_DISABLED, UNSUPPORTED_VERSION, INVALID_REQUEST for too many."""
    _check_on(draft)
    if len(request.filters) > MAX_ACLS_PER_REQUEST:
        text = f"{len(request.filters)} filters in a request, limit {MAX_ACLS_PER_REQUEST}; send several"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    gone: dict[bytes, RemoveAccessControlEntryRecord] = {}
    results = []
    for wanted in request.filters:
        try:
            check_filter(wanted)
        except ApiError as error:
            results.append(AclFilterResult(error_code=error.code, error_message=error.message))
            continue
        found = []
        for content in (yield from _matching(draft, wanted)):
            yield from _spent(draft)
            found.append(MatchingAcl(**content._asdict()))
            for rule_id in draft.image.rule_ids[content]:
                gone[rule_id] = RemoveAccessControlEntryRecord(id=rule_id)
            if len(gone) > MAX_ACLS_PER_REQUEST:
                text = f"Cannot remove more than {MAX_ACLS_PER_REQUEST} acls in a single delete operation."
                raise ApiError(ErrorCode.INVALID_REQUEST, text)
        results.append(AclFilterResult(matching_acls=tuple(found)))
    yield from _write(draft, list(gone.values()))
    return DeleteAclsResponse(filter_results=tuple(results))


def _matching(draft: Draft, wanted: DescribeAclsRequest) -> Sliced[list[AclContent]]:
    """In the order of patterns. No record is added meanwhile."""
    rule_ids = draft.image.rule_ids
    exact = only_match(wanted)
    if exact is not None:
        yield from _spent(draft)
        return [exact] if exact in rule_ids else []
    found = []
    for content in rule_ids:
        yield from _spent(draft)
        if matches(wanted, content):
            found.append(content)
    return sorted(found)


def _spent(draft: Draft) -> Sliced[None]:
    """A rule was looked at."""
    draft.spend(WORK_OF_A_RULE)
    if draft.full:
        yield


def _write(draft: Draft, records: Sequence[AccessControlEntryRecord | RemoveAccessControlEntryRecord]) -> Sliced[None]:
    """All of them in one batch, which is made before in slices. Raises ApiError."""
    for tries_left in reversed(range(MAX_TRIES)):
        aside = draft.preview()
        for record in records:
            aside.add(record)
            draft.spend(WORK_OF_A_RECORD)
            if draft.full and tries_left > 0:
                yield
        _check_on(draft)
        if draft.adopt_access(aside):
            return


def _check_on(draft: Draft) -> None:
    if not draft.state.config.access_rules:
        text = "no authorizer is on at the active controller, so no rule would be enforced: set authorizer.class.name"
        raise ApiError(ErrorCode.SECURITY_DISABLED, text)
    if draft.level < ACCESS_LEVEL:
        text = f"access rules need metadata.version {ACCESS_LEVEL}, and {draft.level} is in force: upgrade it first"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
