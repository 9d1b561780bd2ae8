"""AlterUserScramCredentials at the controller: every refusal, what is written, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import World, cluster, code

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.credentials import AlterUserScramCredentialsRequest, ScramDeletion, ScramUpsertion
from quorumlog.messages.metadata_records import FeatureLevelRecord, UserScramCredentialRecord
from quorumlog.security.sasl.scram_keys import credential_of, salted_password
from quorumlog.security.sasl.scram_mechanism import ScramMechanism
from quorumlog_quorum.controller.engine.limits import MAX_USERS_PER_REQUEST
from quorumlog_quorum.metadata.credentials import credential_record, find_credential
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import encode_record

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512


def upsert(name: str = "ada", mechanism: int = SHA_256, iterations: int = 4096, **changes: Any) -> ScramUpsertion:
    size = 64 if mechanism == SHA_512 else 32
    fields: dict[str, Any] = {"salt": b"salt", "salted_password": b"p" * size, **changes}
    return ScramUpsertion(name=name, mechanism=int(mechanism), iterations=iterations, **fields)


def delete(name: str = "ada", mechanism: int = SHA_256) -> ScramDeletion:
    return ScramDeletion(name=name, mechanism=int(mechanism))


def alter(world: World, *asked: ScramUpsertion | ScramDeletion) -> dict[str, ErrorCode]:
    deletions = tuple(one for one in asked if isinstance(one, ScramDeletion))
    upsertions = tuple(one for one in asked if isinstance(one, ScramUpsertion))
    answer = world.ask(AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions))
    return {one.user: code(one) for one in answer.results}


REFUSALS: list[tuple[str, ScramUpsertion | ScramDeletion, ErrorCode]] = [
    ("empty name", upsert(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ("long name", upsert("\N{SNOWMAN}" * 400), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ("too few iterations", upsert(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ("too many iterations", upsert(iterations=16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ("no salt", upsert(salt=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ("key of the other hash", upsert(salted_password=b"p" * 64), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ("no such mechanism", upsert(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ("unknown mechanism", upsert(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ("nothing to delete", delete(), ErrorCode.RESOURCE_NOT_FOUND),
    ("delete an empty name", delete(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ("delete with no such mechanism", delete(mechanism=7), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
]


@pytest.mark.parametrize(("asked", "want"), [c[1:] for c in REFUSALS], ids=[c[0] for c in REFUSALS])
def test_refused(asked: ScramUpsertion | ScramDeletion, want: ErrorCode) -> None:
    world = cluster(1)
    before = world.tip
    assert alter(world, asked) == {asked.name: want}
    assert world.tip is before


def test_the_good_ones_are_one_batch_and_the_bad_ones_have_errors() -> None:
    world = cluster(1)
    batches = len(world.driver.batches)
    assert alter(world, upsert("a"), upsert("b", iterations=1), upsert("c", SHA_512, 16_384), delete("d")) == {
        "a": ErrorCode.NONE,
        "b": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "c": ErrorCode.NONE,
        "d": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert world.driver.batches[batches:] == [2]
    assert find_credential(world.tip.access, SHA_256, "a") == credential_of(SHA_256.title, b"p" * 32, b"salt", 4096)
    assert find_credential(world.tip.access, SHA_512, "c") == credential_of(SHA_512.title, b"p" * 64, b"salt", 16_384)
    assert not find_credential(world.tip.access, SHA_256, "b") and not find_credential(world.tip.access, SHA_512, "a")


TWICE: list[tuple[str, list[ScramUpsertion | ScramDeletion], ErrorCode]] = [
    ("upsert and upsert", [upsert(), upsert()], ErrorCode.DUPLICATE_RESOURCE),
    ("two mechanisms", [upsert(), upsert(mechanism=SHA_512)], ErrorCode.DUPLICATE_RESOURCE),
    ("delete and upsert", [delete(), upsert()], ErrorCode.DUPLICATE_RESOURCE),
    ("delete and delete", [delete(), delete()], ErrorCode.DUPLICATE_RESOURCE),
    ("three times", [upsert(), upsert(), upsert()], ErrorCode.DUPLICATE_RESOURCE),
    ("the first is wrong", [upsert(iterations=1), upsert()], ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ("the second is wrong too", [upsert(), upsert(iterations=1)], ErrorCode.DUPLICATE_RESOURCE),
]


@pytest.mark.parametrize(("asked", "want"), [c[1:] for c in TWICE], ids=[c[0] for c in TWICE])
def test_a_user_named_twice_keeps_what_it_had(asked: list[Any], want: ErrorCode) -> None:
    world = cluster(1)
    assert alter(world, upsert(iterations=5000)) == {"ada": ErrorCode.NONE}
    before = world.tip
    assert alter(world, *asked) == {"ada": want}
    assert world.tip is before


def test_a_credential_is_replaced_and_deleted_without_a_trace() -> None:
    world = cluster(1)
    before = world.tip
    assert alter(world, upsert(salt=b"one")) == alter(world, upsert(salt=b"two")) == {"ada": ErrorCode.NONE}
    found = find_credential(world.tip.access, SHA_256, "ada")
    assert found is not None and found.salt == b"two"
    assert alter(world, delete()) == {"ada": ErrorCode.NONE}
    assert world.tip.access == before.access and not find_credential(world.tip.access, SHA_256, "ada")


def test_too_many_users_are_refused_as_a_whole() -> None:
    world = cluster(1)
    with pytest.raises(ApiError, match="send several requests") as caught:
        alter(world, *(upsert(f"u{number}") for number in range(MAX_USERS_PER_REQUEST + 1)))
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
    assert set(alter(world, *(upsert(f"u{number}") for number in range(MAX_USERS_PER_REQUEST))).values()) == {
        ErrorCode.NONE
    }


def test_an_older_metadata_version_has_no_credentials() -> None:
    world = World(log=(FeatureLevelRecord(name="metadata.version", level=4),))
    assert alter(world, upsert("a"), delete("b")) == dict.fromkeys("ab", ErrorCode.UNSUPPORTED_VERSION)


def test_the_password_is_in_no_record_and_in_nothing_that_is_printed() -> None:
    """Canaries: what logs and crash stories would print."""
    salted = salted_password("correct horse", b"salt", 4096, "sha256")
    world = cluster(1)
    asked = AlterUserScramCredentialsRequest(upsertions=(upsert(salted_password=salted),))
    world.ask(asked)
    (record,) = [one for one in world.log if isinstance(one, UserScramCredentialRecord)]
    assert salted not in (record.stored_key, record.server_key)
    kept = credential_of(SHA_256.title, salted, b"salt", 4096)
    assert (record.stored_key, record.server_key) == (kept.stored_key, kept.server_key)
    shown = f"{asked!r} {record!r} {kept!r}"
    for secret in (salted, kept.stored_key, kept.server_key):
        assert repr(secret)[2:-1] not in shown
    assert "[hidden]" in repr(asked)


def test_a_new_cluster_begins_with_its_first_users_once() -> None:
    record = credential_record("ada", SHA_512, credential_of(SHA_512.title, b"p" * 64, b"salt", 4096))
    world = World(first_records=(encode_record(record, LATEST_LEVEL),))
    assert find_credential(world.tip.access, SHA_512, "ada") is not None
    assert alter(world, delete(mechanism=SHA_512)) == {"ada": ErrorCode.NONE}
    world.new_controller()
    assert find_credential(world.tip.access, SHA_512, "ada") is None
