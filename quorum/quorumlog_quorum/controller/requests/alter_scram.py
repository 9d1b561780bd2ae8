"""AlterUserScramCredentials: sets and deletes SCRAM credentials of users (KIP-554, Kafka's ScramControlManager).

- A user may be named once, whatever the mechanism. The users that are right go into one batch of the log; each other
  one has an error of its own.
- The salted password is turned into the two keys here, and is in no record.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.credentials import (
    AlteredScramUser,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramDeletion,
    ScramUpsertion,
)
from quorumlog.messages.metadata_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from quorumlog.security.sasl.scram_keys import MAX_ITERATIONS, MIN_ITERATIONS, credential_of
from quorumlog.security.sasl.scram_mechanism import ScramMechanism
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.engine.limits import MAX_USERS_PER_REQUEST
from quorumlog_quorum.metadata.access import Access
from quorumlog_quorum.metadata.credentials import credential_record, find_credential
from quorumlog_quorum.metadata.features import ACCESS_LEVEL

MAX_NAME_BYTES = 1024  # of a user, in UTF-8

_Record = RemoveUserScramCredentialRecord | UserScramCredentialRecord


def alter_scram(draft: Draft, request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    """Raises ApiError(POLICY_VIOLATION) for too many users."""
    asked: list[ScramDeletion | ScramUpsertion] = [*request.deletions, *request.upsertions]
    if len(asked) > MAX_USERS_PER_REQUEST:
        text = f"{len(asked)} users in one request, limit {MAX_USERS_PER_REQUEST}; send several requests"
        raise ApiError(ErrorCode.POLICY_VIOLATION, text)
    made: dict[str, _Record] = {}
    refused: dict[str, ApiError] = {}
    for one in asked:
        if one.name in refused:
            continue  # the first reason stands
        try:
            if made.pop(one.name, None) is not None:
                text = (
                    "a user's credentials cannot be altered twice in one request; send one request for each mechanism"
                )
                raise ApiError(ErrorCode.DUPLICATE_RESOURCE, text)
            made[one.name] = _record(draft, one)
        except ApiError as error:
            refused[one.name] = error
    for record in made.values():
        draft.add(record)
    results = [AlteredScramUser(user=name) for name in made]
    results += [
        AlteredScramUser(user=name, error_code=error.code, error_message=error.message)
        for name, error in refused.items()
    ]
    return AlterUserScramCredentialsResponse(results=tuple(results))


def _record(draft: Draft, one: ScramDeletion | ScramUpsertion) -> _Record:
    """Raises ApiError."""
    if draft.level < ACCESS_LEVEL:
        text = f"SCRAM credentials need metadata.version {ACCESS_LEVEL}; it is {draft.level}: quorumlog feature upgrade"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    if not one.name or len(one.name.encode("utf-8")) > MAX_NAME_BYTES:
        text = f"a user's name has 1 to {MAX_NAME_BYTES} bytes"
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
    try:
        mechanism = ScramMechanism(one.mechanism)
    except ValueError:
        known = " or ".join(f"{one.value} ({one.title})" for one in ScramMechanism)
        text = f"mechanism {one.mechanism} is not {known}"
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, text) from None
    if isinstance(one, ScramDeletion):
        return _removal(draft.image.access, one.name, mechanism)
    _check(one, mechanism)
    return credential_record(
        one.name, mechanism, credential_of(mechanism.title, one.salted_password, one.salt, one.iterations)
    )


def _removal(access: Access, name: str, mechanism: ScramMechanism) -> RemoveUserScramCredentialRecord:
    if find_credential(access, mechanism, name) is None:
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, f"this user has no credential for {mechanism.title}")
    return RemoveUserScramCredentialRecord(name=name, mechanism=int(mechanism))


def _check(one: ScramUpsertion, mechanism: ScramMechanism) -> None:
    """A wrong length would make a credential that nobody can log in with; Kafka takes it. Messages hold no secret."""
    if not MIN_ITERATIONS <= one.iterations <= MAX_ITERATIONS:
        text = f"{one.iterations} iterations are not from {MIN_ITERATIONS} to {MAX_ITERATIONS}"
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
    if not one.salt or len(one.salted_password) != mechanism.key_bytes:
        text = f"{mechanism.title} needs a salt, and a salted password of {mechanism.key_bytes} bytes"
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
