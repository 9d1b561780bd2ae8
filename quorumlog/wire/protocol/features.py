"""The features that ApiVersions announces (KIP-584), and their names on Kafka's wire.

Our levels of `metadata.version` are numbers of our own. Kafka's tools would print them, and set them, as Kafka's
releases. So Kafka's wire calls ours `quorumlog.metadata.version`, and `metadata.version` there means Kafka's own, which
no cluster of ours has (decision 29).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    DescribedFeature,
    DescribeFeaturesRequest,
    DescribeFeaturesResponse,
    FeatureUpdate,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from quorumlog.messages.common import FeatureRange
from quorumlog.wire.convert.mirror import from_values, to_values
from quorumlog.wire.format.schema import Values

METADATA_VERSION = "metadata.version"
ON_WIRE = "quorumlog.metadata.version"
KAFKAS_OWN = "Kafka's metadata.version"  # no feature of ours: the controller refuses it by this name
UPGRADE, SAFE_DOWNGRADE = 1, 2  # Kafka's numbers
SOFTWARE_NAME = "quorumlog"
SOFTWARE_VERSION = "0.1.0"
_TO_WIRE = {METADATA_VERSION: ON_WIRE, KAFKAS_OWN: METADATA_VERSION}
_FROM_WIRE = {theirs: ours for ours, theirs in _TO_WIRE.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """finalized: levels by name. epoch: grows whenever a level changes; -1: the node does not know the levels yet."""

    supported: tuple[FeatureRange, ...] = ()
    finalized: Mapping[str, int] = field(default_factory=dict)
    epoch: int = -1


@dataclass(slots=True)
class FeatureNotice:
    """Shared by a node and its transport: `read` is set by the node once it has metadata."""

    read: Callable[[], Features] = Features


def announced(features: Features, version: int) -> Values:
    """The fields of ApiVersions' answer. Before version 4 a feature that may be off is left out, as older clients
    refuse a level of 0."""
    finalized = features.finalized.items() if features.epoch >= 0 else ()
    return {
        "supported_features": [
            {"name": to_wire(one.name), "min_version": one.min_level, "max_version": one.max_level}
            for one in features.supported
            if one.min_level > 0 or version >= 4
        ],
        "finalized_features_epoch": features.epoch,
        "finalized_features": [
            {"name": to_wire(name), "max_version_level": level, "min_version_level": level}
            for name, level in finalized
            if level > 0
        ],
    }


def ask_announced(_request: DescribeFeaturesRequest, _version: int) -> Values:
    """DescribeFeatures as a request of ApiVersions: what a node announces of features is what its answer would hold."""
    return {"client_software_name": SOFTWARE_NAME, "client_software_version": SOFTWARE_VERSION}


def read_announced(values: Values, _request: Any, _version: int) -> DescribeFeaturesResponse:
    """Levels and ranges of the node that answered; what other nodes support is not announced.

    A feature that may be off, and is, has no range in version 3.
    """
    code, epoch = values["error_code"], values.get("finalized_features_epoch", -1)
    if code == ErrorCode.NONE and epoch < 0:
        code = ErrorCode.LEADER_NOT_AVAILABLE  # as its DescribeFeatures says
    if code != ErrorCode.NONE:
        return DescribeFeaturesResponse(error_code=code, error_message="the node does not know the levels in force yet")
    ranges = {one["name"]: (one["min_version"], one["max_version"]) for one in values.get("supported_features", ())}
    levels = {one["name"]: one["max_version_level"] for one in values.get("finalized_features", ())}
    found = []
    for name in {**ranges, **levels}:
        low, high = ranges.get(name, (0, levels.get(name, 0)))
        level = levels.get(name, 0)
        found.append(DescribedFeature(name=from_wire(name), min_level=low, max_level=high, finalized_level=level))
    return DescribeFeaturesResponse(features=tuple(sorted(found, key=lambda one: one.name)), epoch=epoch)


def read_request(values: Values, version: int) -> UpdateFeaturesRequest:
    """Version 0 says only whether a downgrade is allowed."""
    request: UpdateFeaturesRequest = from_values(UpdateFeaturesRequest, {**values, "feature_updates": ()})
    return replace(request, updates=tuple(_update(update, version) for update in values["feature_updates"]))


def write_request(request: UpdateFeaturesRequest, _version: int) -> Values:
    updates = [
        {
            "feature": to_wire(update.name),
            "max_version_level": update.level,
            "upgrade_type": update.upgrade_type,
            "allow_downgrade": update.upgrade_type != UPGRADE,
        }
        for update in request.updates
    ]
    return {**to_values(request), "feature_updates": updates}


def write_response(response: UpdateFeaturesResponse, _request: Any, _version: int) -> Values:
    results = [{**to_values(result), "feature": to_wire(result.name)} for result in response.results]
    return {**to_values(response), "results": results}


def read_response(values: Values, _request: Any, _version: int) -> UpdateFeaturesResponse:
    results = [{**result, "feature": from_wire(result["feature"])} for result in values.get("results", ())]
    response: UpdateFeaturesResponse = from_values(UpdateFeaturesResponse, {**values, "results": results})
    return response


def to_wire(name: str) -> str:
    return _TO_WIRE.get(name, name)


def from_wire(name: str) -> str:
    return _FROM_WIRE.get(name, name)


def _update(values: Values, version: int) -> FeatureUpdate:
    allowed = SAFE_DOWNGRADE if values.get("allow_downgrade") else UPGRADE
    return FeatureUpdate(
        name=from_wire(values["feature"]),
        level=values["max_version_level"],
        upgrade_type=allowed if version == 0 else values["upgrade_type"],
    )
