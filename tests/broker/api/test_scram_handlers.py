"""SCRAM credentials at a broker: what it tells, and from whom it takes a salted password."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from broker_fakes import CLIENT, FakeContext, Fakes, image_of, usual_image

from quorumlog.errors import ErrorCode
from quorumlog.messages.credentials import (
    AlteredScramUser,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    ScramDeletion,
    ScramUpsertion,
    ScramUserName,
)
from quorumlog.messages.metadata_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.serving.dispatch import PeerContext
from quorumlog.security.protocol import SecurityProtocol
from quorumlog_broker.api.handlers import HANDLERS

PRIVATE = FakeContext(private=True)
IN_CLEAR = FakeContext()
ADA = ScramUpsertion(name="ada", mechanism=1, iterations=4096, salt=b"new", salted_password=b"p" * 32)


def credential(name: str, mechanism: int = 1, salt: bytes = b"salt", iterations: int = 4096) -> Any:
    return UserScramCredentialRecord(
        name=name, mechanism=mechanism, salt=salt, stored_key=b"k", server_key=b"k", iterations=iterations
    )


def fakes() -> Fakes:
    found = Fakes()
    records = [credential("ops,eu=1"), credential("ada", 2, iterations=8192), credential("ada")]
    found.subscription.image = image_of(records, usual_image())
    return found


def ask(fakes: Fakes, request: Any, context: FakeContext = IN_CLEAR) -> Any:
    async def run() -> Any:
        return await HANDLERS[type(request)](fakes.services(), context, request)

    return asyncio.run(run())


def describe(*names: str) -> list[Any]:
    users = tuple(ScramUserName(name=name) for name in names)
    answer = ask(fakes(), DescribeUserScramCredentialsRequest(users=users))
    return [
        (one.user, one.error_code, [(info.mechanism, info.iterations) for info in one.credential_infos])
        for one in answer.results
    ]


ALL_OF_ADA = ("ada", 0, [(1, 4096), (2, 8192)])


def test_described_are_mechanism_and_iterations() -> None:
    assert describe() == [ALL_OF_ADA, ("ops,eu=1", 0, [(1, 4096)])]
    assert describe("ada") == [ALL_OF_ADA]
    assert describe("nobody", "ada") == [ALL_OF_ADA, ("nobody", ErrorCode.RESOURCE_NOT_FOUND, [])]
    assert describe("ada", "ada") == [("ada", ErrorCode.DUPLICATE_RESOURCE, [])]


def test_a_salted_password_in_clear_is_refused_and_goes_nowhere() -> None:
    found = fakes()
    found.controller.answers.append(AlterUserScramCredentialsResponse(results=(AlteredScramUser(user="ada"),)))
    answer = ask(found, AlterUserScramCredentialsRequest(upsertions=(ADA,)))
    assert [(one.user, one.error_code) for one in answer.results] == [("ada", ErrorCode.UNACCEPTABLE_CREDENTIAL)]
    assert "over TLS" in answer.results[0].error_message and not found.controller.calls


def test_deletions_in_clear_are_carried_out() -> None:
    found = fakes()
    found.controller.answers.append(AlterUserScramCredentialsResponse(results=(AlteredScramUser(user="ops,eu=1"),)))
    gone = RemoveUserScramCredentialRecord(name="ops,eu=1", mechanism=1)
    found.subscription.next_images.append(image_of([gone], found.subscription.image))
    asked = AlterUserScramCredentialsRequest(
        deletions=(ScramDeletion(name="ops,eu=1", mechanism=1), ScramDeletion(name="ada", mechanism=2)),
        upsertions=(ADA,),
    )
    answer = ask(found, asked)
    assert {one.user: one.error_code for one in answer.results} == {"ops,eu=1": 0, "ada": 93}
    (forwarded,) = found.controller.calls
    assert forwarded == AlterUserScramCredentialsRequest(deletions=asked.deletions[:1])
    assert [one.user for one in ask(found, DescribeUserScramCredentialsRequest()).results] == ["ada"]


def test_a_change_is_answered_once_this_broker_shows_it() -> None:
    found = fakes()
    found.controller.answers.append(AlterUserScramCredentialsResponse(results=(AlteredScramUser(user="ada"),)))
    found.subscription.next_images.append(image_of([credential("ada", salt=b"new")], found.subscription.image))
    ask(found, AlterUserScramCredentialsRequest(upsertions=(ADA,)), PRIVATE)
    assert not found.subscription.next_images and len(found.controller.calls) == 1


@pytest.mark.parametrize(
    ("host", "protocol", "want"),
    [
        ("127.0.0.1", SecurityProtocol.PLAINTEXT, True),
        ("127.8.0.9", SecurityProtocol.SASL_PLAINTEXT, True),
        ("::1", SecurityProtocol.PLAINTEXT, True),
        ("::ffff:127.0.0.1", SecurityProtocol.PLAINTEXT, True),
        ("10.0.0.1", SecurityProtocol.PLAINTEXT, False),
        ("10.0.0.1", SecurityProtocol.SASL_PLAINTEXT, False),
        ("", SecurityProtocol.PLAINTEXT, False),
        ("localhost", SecurityProtocol.PLAINTEXT, False),
        ("10.0.0.1", SecurityProtocol.SSL, True),
        ("10.0.0.1", SecurityProtocol.SASL_SSL, True),
    ],
)
def test_private_is_what_nobody_between_can_read(host: str, protocol: SecurityProtocol, want: bool) -> None:
    context = PeerContext(replace(CLIENT, security=protocol), Caller("c"), host)
    assert context.private is want
