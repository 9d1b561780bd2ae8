"""Features on Kafka's wire: what ApiVersions announces in each version, and UpdateFeatures under Kafka's names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorumlog.messages.admin import (
    FeatureUpdate,
    UpdateFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from quorumlog.messages.common import FeatureRange
from quorumlog.rpc.transport import Address
from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.header import API_VERSIONS_KEY, RequestHeader, read_fixed
from quorumlog.wire.format.kio_schemas import request_shape, response_shape
from quorumlog.wire.protocol import features, versions
from quorumlog.wire.protocol.apis import BY_KEY
from quorumlog.wire.protocol.codec import decode_request, decode_response_values, encode_request_values
from quorumlog.wire.protocol.features import Features
from quorumlog_quorum.controller.requests import update_features

SUPPORTED = (
    FeatureRange(name="may.be.off", min_level=0, max_level=1),
    FeatureRange(name="metadata.version", min_level=1, max_level=3),
)
FEATURES = Features(supported=SUPPORTED, finalized={"metadata.version": 2, "off": 0}, epoch=41)


def answered(version: int, announced: Features) -> dict[str, object]:
    header = RequestHeader(API_VERSIONS_KEY, version, 7, "c")
    values = {"client_software_name": "x", "client_software_version": "1"}
    frame = b"".join(encode_request_values(header, request_shape("api_versions", version), values))[4:]
    cursor = Cursor(memoryview(frame))
    fixed = read_fixed(cursor)
    answer = b"".join(versions.Answers({18: (0, 4)}).answer(cursor, fixed, None, announced))
    return decode_response_values(header, response_shape("api_versions", version), memoryview(answer)[4:])


@pytest.mark.parametrize("version", range(5))
def test_api_versions_announces_features_from_version_3_on(version: int) -> None:
    found = answered(version, FEATURES)
    if version < 3:
        assert "supported_features" not in found
        return
    names = [one["name"] for one in found["supported_features"]]  # type: ignore[attr-defined]
    assert names == (["may.be.off"] if version == 4 else []) + ["quorumlog.metadata.version"]
    assert found["finalized_features_epoch"] == 41
    assert found["finalized_features"] == [
        {"name": "quorumlog.metadata.version", "max_version_level": 2, "min_version_level": 2}
    ]


def test_a_node_without_metadata_announces_no_finalized_level() -> None:
    found = answered(4, Features(supported=SUPPORTED, finalized={"metadata.version": 2}))
    assert "finalized_features_epoch" not in found and "finalized_features" not in found


def test_the_controller_knows_kafkas_own_feature_by_its_name() -> None:
    assert features.KAFKAS_OWN == update_features.KAFKAS_OWN
    assert features.from_wire("metadata.version") == features.KAFKAS_OWN
    assert features.to_wire(features.KAFKAS_OWN) == "metadata.version"
    assert features.to_wire(features.METADATA_VERSION) == features.ON_WIRE == "quorumlog.metadata.version"


ROUND = [(version, kind) for version in (0, 1, 2) for kind in (1, 2, 3) if version or kind < 3]


@pytest.mark.parametrize(("version", "kind"), ROUND)
def test_a_request_crosses_in_every_version_that_can_express_it(version: int, kind: int) -> None:
    api = BY_KEY[57]
    updates = (
        FeatureUpdate(name="metadata.version", level=2, upgrade_type=kind),
        FeatureUpdate(name=features.KAFKAS_OWN, level=25, upgrade_type=kind),
        FeatureUpdate(name="f", level=0, upgrade_type=kind),
    )
    request = UpdateFeaturesRequest(updates=updates, timeout_ms=1_234, validate_only=version > 0)
    values = api.write_request(request, version)
    assert [update["feature"] for update in values["feature_updates"]] == [
        "quorumlog.metadata.version",
        "metadata.version",
        "f",
    ]
    sent = b"".join(encode_request_values(RequestHeader(57, version, 7, "c"), api.request_shape(version), values))
    cursor = Cursor(memoryview(sent)[4:])
    again = decode_request(api, cursor, read_fixed(cursor)).request
    assert again == request


def test_an_answer_names_features_as_the_client_did() -> None:
    api = BY_KEY[57]
    response = UpdateFeaturesResponse(
        error_code=95,
        error_message="no",
        results=(UpdateFeatureResult(name="metadata.version", error_code=95, error_message="no"),),
    )
    values = api.write_response(response, None, 1)
    assert values["results"] == [{"feature": "quorumlog.metadata.version", "error_code": 95, "error_message": "no"}]
    assert api.read_response(values, None, 1) == response


def test_an_answer_is_encoded_once_until_something_else_is_announced() -> None:
    answers = versions.Answers({18: (0, 4)})
    first, second = Address("127.0.0.1", 1), Address("127.0.0.1", 2)
    later = replace(FEATURES, epoch=42, finalized={"metadata.version": 3, "off": 0})

    def asked(
        software: str, version: int, correlation_id: int, grpc: Address | None, announced: Features
    ) -> dict[str, object]:
        header = RequestHeader(API_VERSIONS_KEY, version, correlation_id, "c")
        values = {"client_software_name": software, "client_software_version": "1"}
        frame = b"".join(encode_request_values(header, request_shape("api_versions", version), values))[4:]
        cursor = Cursor(memoryview(frame))
        answer = b"".join(answers.answer(cursor, read_fixed(cursor), grpc, announced))
        assert answer[4:8] == correlation_id.to_bytes(4, "big", signed=True)
        return decode_response_values(header, response_shape("api_versions", version), memoryview(answer)[4:])

    seen = [
        asked("quorumlog", 4, 1, first, FEATURES).get("grpc_address"),
        asked("another", 4, -2, first, FEATURES).get("grpc_address"),
        asked("quorumlog", 4, 3, second, FEATURES).get("grpc_address"),
        asked("quorumlog", 4, 4, None, FEATURES).get("grpc_address"),
    ]
    assert [one or None for one in seen] == ["127.0.0.1:1", None, "127.0.0.1:2", None]
    epochs = [asked("another", 4, 5, None, one).get("finalized_features_epoch") for one in (FEATURES, later, FEATURES)]
    assert epochs == [41, 42, 41]
    assert "supported_features" not in asked("another", 0, 6, None, FEATURES)
