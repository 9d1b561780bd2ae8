"""The calls of transactions on Kafka's wire: bytes of Kafka's own classes, other clients' encoders, old versions."""

from __future__ import annotations

import dataclasses
import typing
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ErrorCode
from quorumlog.messages import produce, transactions
from quorumlog.wire.protocol.apis import BY_KEY, BY_REQUEST
from quorumlog.wire.protocol.versions import served_versions
from tests.parts import few
from tests.rules import rule
from tests.wire.call_frames import (
    Frames,
    check_foreign_reader,
    check_request,
    check_response,
    frames,
    golden_bytes,
    in_each_version,
)
from tests.wire.example import Example
from tests.wire.transaction_examples import ADD_OFFSETS, ADD_PARTITIONS, END, EXAMPLES, INIT, OFFSETS

BYTES = golden_bytes("transaction_messages.txt")
CASES = in_each_version(EXAMPLES)
NAMES = [f"{example.name}-{version}" for example, version in CASES]


# --- Kafka's own bytes ---


def test_every_version_has_an_example() -> None:
    assert {(one.key, one.oldest, one.newest) for one in EXAMPLES} == {
        (api.key, api.oldest, api.newest)
        for api in BY_REQUEST.values()
        if api.method.request.__module__ == transactions.__name__ or api.method.request is produce.InitProducerIdRequest
    }
    assert len(BYTES) == 2 * len(CASES)


@pytest.mark.parametrize(("example", "version"), CASES, ids=NAMES)
def test_requests_have_kafkas_bytes(example: Example, version: int) -> None:
    check_request(BYTES, example, version)


@pytest.mark.parametrize(("example", "version"), CASES, ids=NAMES)
def test_responses_have_kafkas_bytes(example: Example, version: int) -> None:
    check_response(BYTES, example, version)


@pytest.mark.parametrize("example", EXAMPLES, ids=[one.name for one in EXAMPLES])
def test_the_newest_version_says_everything_of_a_response(example: Example) -> None:
    body, wire = BYTES[f"{example.name}Response", example.newest], frames(example, example.newest)
    assert wire.read_response(example.our_request(example.newest), body) == example.our_response(example.newest)


# --- kafka-python, whose codec is made from Kafka's schemas at run time ---

FOREIGN = {22: "producer", 24: "producer", 25: "producer", 26: "producer", 28: "producer"}


@pytest.mark.parametrize(("example", "version"), CASES, ids=NAMES)
def test_kafka_python_reads_our_response(example: Example, version: int) -> None:
    module = import_module(f"kafka.protocol.{FOREIGN.get(example.key, 'admin')}")
    kind = getattr(module, f"{example.name}Response", None)
    if kind is None or version > kind.max_version:
        pytest.skip(f"kafka-python does not know {example.name} {version}")
    check_foreign_reader(kind, example, version)


# --- what a message says survives every byte ---

VALUES = {
    int: st.sampled_from([-1, 0, 1, 5, 127]),
    str: st.sampled_from(["", "g", "gr\u00fcppe", "x" * 300]),
    bool: st.booleans(),
}
OF_THE_NEWEST = {"transaction_version": 2, "takes_producer_fenced": True, "takes_abortable": True}


def built(kind: Any) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{one.name: value_of(one.name, hints[one.name]) for one in dataclasses.fields(kind)})


def value_of(name: str, hint: Any) -> st.SearchStrategy[Any]:
    arguments = typing.get_args(hint)
    if name in OF_THE_NEWEST:
        return st.just(OF_THE_NEWEST[name])
    if name == "topic_id":
        return st.just(b"")
    if typing.get_origin(hint) is tuple:
        return st.lists(value_of(name, arguments[0]), max_size=3).map(tuple)
    if type(None) in arguments:
        return st.none() | value_of(name, next(one for one in arguments if one is not type(None)))
    return built(hint) if dataclasses.is_dataclass(hint) else VALUES[hint]


@pytest.mark.parametrize("example", EXAMPLES, ids=[one.name for one in EXAMPLES])
@settings(max_examples=few(30), deadline=None)
@given(data=st.data())
def test_any_request_survives_the_newest_version(example: Example, data: st.DataObject) -> None:
    wire = frames(example, example.newest)
    request = data.draw(built(wire.api.method.request))
    assert wire.read_request(wire.write_request(request)).request == request


# --- what a version says by its number ---

FENCED = [(INIT, 4), (ADD_PARTITIONS, 2), (ADD_OFFSETS, 2), (END, 2)]


@rule("group 6.5")
@pytest.mark.parametrize(("example", "first"), FENCED, ids=[one.name for one, _ in FENCED])
def test_a_request_tells_whether_its_producer_understands_that_it_is_fenced(example: Example, first: int) -> None:
    """INVALID_PRODUCER_EPOCH stood for PRODUCER_FENCED before (KIP-588)."""
    for version in range(example.oldest, example.newest + 1):
        request = frames(example, version).read_request(BYTES[f"{example.name}Request", version]).request
        said = request.transactions[0] if example is ADD_PARTITIONS else request
        assert said.takes_producer_fenced is (version >= first)


EPOCHS = [(ADD_PARTITIONS, 4), (END, 5), (OFFSETS, 5)]


@pytest.mark.parametrize(("example", "first"), EPOCHS, ids=[one.name for one, _ in EPOCHS])
def test_a_request_tells_by_which_rules_its_transaction_runs(example: Example, first: int) -> None:
    for version in range(example.oldest, example.newest + 1):
        request = frames(example, version).read_request(BYTES[f"{example.name}Request", version]).request
        said = request.transactions if example is ADD_PARTITIONS else (request,)
        assert {one.transaction_version for one in said} == {2 if version >= first else 0}


@pytest.mark.parametrize("version", range(6))
def test_a_commit_of_offsets_tells_whether_its_producer_understands_abortable_errors(version: int) -> None:
    request = frames(OFFSETS, version).read_request(BYTES["TxnOffsetCommitRequest", version]).request
    assert request.takes_abortable is (version >= 4)


@rule("group 6.5")
@pytest.mark.parametrize("version", range(6))
def test_a_coordinator_that_loads_is_one_that_is_not_available_to_old_producers(version: int) -> None:
    wire, request = frames(OFFSETS, version), OFFSETS.our_request(version)
    refused = transactions.TxnOffsetCommitResponse(error_code=14, error_message="loading")
    found = wire.read_response(request, wire.write_response(request, refused))
    assert [one.error_code for one in found.topics[0].partitions] == [14 if version >= 2 else 15] * 2


def request_of(example: Example, version: int, **changes: Any) -> Any:
    request = example.our_request(version)
    if example is not ADD_PARTITIONS:
        return dataclasses.replace(request, **changes)
    return transactions.AddPartitionsToTxnRequest(
        transactions=(dataclasses.replace(request.transactions[0], verify_only=False, **changes),)
    )


OLD, NEW = {"transaction_version": 0}, {"transaction_version": 2}
UNFENCED = {"takes_producer_fenced": False}
CHOSEN = [
    ("an epoch per transaction", request_of(END, 5), 5),
    ("an epoch for all", request_of(END, 5, **OLD), 4),
    ("an old producer", request_of(END, 5, **OLD, **UNFENCED), 1),
    ("partitions of a broker", request_of(ADD_PARTITIONS, 5, **NEW), 5),
    ("partitions to verify", ADD_PARTITIONS.our_request(5), 5),
    ("partitions of a producer", request_of(ADD_PARTITIONS, 3, **OLD), 3),
    ("partitions of an old producer", request_of(ADD_PARTITIONS, 3, **OLD, **UNFENCED), 1),
    ("a group", request_of(ADD_OFFSETS, 4), 4),
    ("a group, old producer", request_of(ADD_OFFSETS, 4, **UNFENCED), 1),
    ("offsets that add themselves", request_of(OFFSETS, 5), 5),
    ("offsets", request_of(OFFSETS, 5, **OLD), 4),
    ("offsets without abortable errors", request_of(OFFSETS, 5, **OLD, takes_abortable=False), 3),
    ("a producer id", request_of(INIT, 5), 5),
    ("a producer id, old producer", request_of(INIT, 5, **UNFENCED), 3),
]


@pytest.mark.parametrize(("request_", "version"), [one[1:] for one in CHOSEN], ids=[one[0] for one in CHOSEN])
def test_a_client_uses_the_newest_version_that_says_what_it_means(request_: Any, version: int) -> None:
    api = BY_REQUEST[type(request_)]
    assert api.version_for(request_, api.newest) == version
    wire = Frames(api, version)
    assert wire.read_request(wire.write_request(request_)).request == request_


# --- errors of a whole request ---


@pytest.mark.parametrize(("example", "version"), CASES, ids=NAMES)
def test_an_error_of_the_whole_request_reaches_who_asked(example: Example, version: int) -> None:
    """In the field for it, else at everything that was asked for."""
    wire, request = frames(example, version), example.our_request(version)
    refused = wire.api.method.response(error_code=ErrorCode.NOT_COORDINATOR, error_message="it moved")
    found = wire.read_response(request, wire.write_response(request, refused))
    codes = set(codes_of(found))
    assert ErrorCode.NOT_COORDINATOR in codes and codes <= {ErrorCode.NOT_COORDINATOR, ErrorCode.NONE}
    if not found.error_code:
        assert codes_of(found).count(ErrorCode.NOT_COORDINATOR) == asked_for(request)


def codes_of(part: Any) -> list[int]:
    found = [part.error_code] if hasattr(part, "error_code") else []
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        found += (
            [code for one in value if dataclasses.is_dataclass(one) for code in codes_of(one)]
            if isinstance(value, tuple)
            else []
        )
    return found


def asked_for(request: Any) -> int:
    """Partitions, or ids."""
    if isinstance(request, transactions.DescribeTransactionsRequest):
        return len(request.transactional_ids)
    holders = getattr(request, "transactions", None) or getattr(request, "markers", None) or (request,)
    return sum(len(topic.partitions) for holder in holders for topic in holder.topics)


# --- what is announced ---


def test_transactions_are_announced_where_they_have_handlers() -> None:
    everything = {example.key: (example.oldest, example.newest) for example in EXAMPLES}
    announced = served_versions(None, authenticates=False)
    assert {key: announced[key] for key in everything} == everything
    assert BY_KEY[22].newest == 5, "6 is that of two-phase commit"
    served = served_versions((produce.InitProducerIdRequest,), authenticates=False)
    assert set(everything) & set(served) == {22}
