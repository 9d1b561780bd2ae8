"""SCRAM credentials of users (KIP-554). The password never leaves this process: the salted one is sent.

A request may name a user once, so several changes of one user go in several requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.cluster.retried_change import RetriedChange
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.messages.credentials import (
    AlteredScramUser,
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramDeletion,
    ScramUpsertion,
    ScramUserName,
)
from quorumlog.security.sasl.scram_keys import MAX_ITERATIONS, MIN_ITERATIONS, salted_password
from quorumlog.security.sasl.scram_mechanism import DEFAULT_ITERATIONS, SALT_BYTES, ScramMechanism

USERS_PER_REQUEST = 100

Iterations = dict[ScramMechanism, int]  # a user's credentials: those of PBKDF2


@dataclass(frozen=True, slots=True)
class SetPassword:
    """iterations: MIN_ITERATIONS to MAX_ITERATIONS, inclusive. The password is not printed."""

    user: str
    password: str = field(repr=False)
    mechanism: ScramMechanism = ScramMechanism.SHA_512
    iterations: int = DEFAULT_ITERATIONS


@dataclass(frozen=True, slots=True)
class DeleteCredential:
    user: str
    mechanism: ScramMechanism = ScramMechanism.SHA_512


Change = SetPassword | DeleteCredential


class UserOutcome(NamedTuple):
    """What became of one change. error: NONE: done."""

    error: ErrorCode
    message: str = ""


async def describe_users(link: Link, users: Iterable[str] | None) -> dict[str, Iterations]:
    """See `AsyncAdmin.describe_user_scram_credentials`."""
    names = None if users is None else sorted(set(users))
    if names == []:
        return {}
    request = DescribeUserScramCredentialsRequest(users=tuple(ScramUserName(name=name) for name in names or ()))

    async def ask() -> DescribeUserScramCredentialsResponse:
        response: DescribeUserScramCredentialsResponse = await link.call_any(request, link.options.request_timeout_ms)
        check(response)
        return response

    response = await link.until(ask, link.options.default_api_timeout_ms)
    found = {}
    for one in response.results:
        if one.error_code == ErrorCode.NONE:
            found[one.user] = {ScramMechanism(info.mechanism): info.iterations for info in one.credential_infos}
        elif one.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            raise RequestFailed(ErrorCode(one.error_code), f"{one.user}: {one.error_message}")
    return found


async def alter_users(
    link: Link, changes: Iterable[Change], random_bytes: Callable[[int], bytes]
) -> dict[Change, UserOutcome]:
    """See `AsyncAdmin.alter_user_scram_credentials`. Raises ValueError before anything is sent."""
    left = list(dict.fromkeys(changes))
    for change in left:
        if isinstance(change, SetPassword) and not MIN_ITERATIONS <= change.iterations <= MAX_ITERATIONS:
            raise ValueError(f"{change.iterations} iterations are not from {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    outcomes: dict[Change, UserOutcome] = {}
    while left:
        turn: dict[str, Change] = {}
        for change in left:
            if len(turn) < USERS_PER_REQUEST:
                turn.setdefault(change.user, change)
        left = [change for change in left if turn.get(change.user) is not change]
        outcomes |= await _alter_once(link, turn, random_bytes)
    return outcomes


async def _alter_once(
    link: Link, changes: dict[str, Change], random_bytes: Callable[[int], bytes]
) -> dict[Change, UserOutcome]:
    upsertions = []
    for change in changes.values():
        if isinstance(change, SetPassword):
            upsertions.append(_salted(change, random_bytes(SALT_BYTES)))
            await asyncio.sleep(0)  # each takes some ms
    deletions = [
        ScramDeletion(name=one.user, mechanism=int(one.mechanism))
        for one in changes.values()
        if isinstance(one, DeleteCredential)
    ]
    request = AlterUserScramCredentialsRequest(deletions=tuple(deletions), upsertions=tuple(upsertions))
    sent = RetriedChange(link, request)
    response = await sent.carry_out()
    return {
        changes[one.user]: _outcome(changes[one.user], one, sent.in_doubt)
        for one in response.results
        if one.user in changes
    }


def _salted(change: SetPassword, salt: bytes) -> ScramUpsertion:
    return ScramUpsertion(
        name=change.user,
        mechanism=int(change.mechanism),
        iterations=change.iterations,
        salt=salt,
        salted_password=salted_password(change.password, salt, change.iterations, change.mechanism.hash),
    )


def _outcome(change: Change, one: AlteredScramUser, in_doubt: bool) -> UserOutcome:
    error = ErrorCode(one.error_code)
    if in_doubt and isinstance(change, DeleteCredential) and error is ErrorCode.RESOURCE_NOT_FOUND:
        return UserOutcome(ErrorCode.NONE)  # an earlier try has deleted it
    return UserOutcome(error, one.error_message)
