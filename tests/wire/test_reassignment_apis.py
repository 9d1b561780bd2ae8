"""Reassignments and elections on Kafka's wire: the bytes of Kafka's own classes."""

from __future__ import annotations

import pytest

from quorumlog.messages import reassignments
from quorumlog.wire.protocol.apis import BY_REQUEST
from tests.wire.call_frames import check_request, check_response, golden_bytes, in_each_version
from tests.wire.example import Example
from tests.wire.reassignment_examples import EXAMPLES

BYTES = golden_bytes("reassignment_messages.txt")
CASES = in_each_version(EXAMPLES)
NAMES = [f"{example.name}-{version}" for example, version in CASES]


def test_every_version_has_an_example() -> None:
    assert {(one.key, one.oldest, one.newest) for one in EXAMPLES} == {
        (api.key, api.oldest, api.newest)
        for api in BY_REQUEST.values()
        if api.method.request.__module__ == reassignments.__name__
    }
    assert len(BYTES) == 2 * len(CASES)


@pytest.mark.parametrize(("example", "version"), CASES, ids=NAMES)
def test_requests_have_kafkas_bytes(example: Example, version: int) -> None:
    check_request(BYTES, example, version)


@pytest.mark.parametrize(("example", "version"), CASES, ids=NAMES)
def test_responses_have_kafkas_bytes(example: Example, version: int) -> None:
    check_response(BYTES, example, version)
