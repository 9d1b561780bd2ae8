"""Feature levels (KIP-584): which formats the cluster writes, and which of them this software supports.

A FeatureLevelRecord finalizes a level: from that record on, the cluster uses it. Each broker registers with the range
of levels that its software supports; a node whose ranges do not cover a finalized level must not take part.

`metadata.version` decides in which version each metadata record is written (frame.py):

    1  the records of logs that name no level: the formats before there were levels
    2  RegisterBrokerRecord 1, which carries the broker's feature ranges
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog.messages.common import FeatureRange

METADATA_VERSION = "metadata.version"
IMPLIED_LEVEL = 1  # of metadata.version where no record names one
LATEST_LEVEL = 2  # of metadata.version; a new cluster begins with it

SUPPORTED = (FeatureRange(name=METADATA_VERSION, min_level=IMPLIED_LEVEL, max_level=LATEST_LEVEL),)
SUPPORTED_WITHOUT_RANGES = (FeatureRange(name=METADATA_VERSION, min_level=IMPLIED_LEVEL, max_level=IMPLIED_LEVEL),)


def metadata_version(features: Mapping[str, int]) -> int:
    """The level in force. features: the finalized levels by name, as an image holds them."""
    return features.get(METADATA_VERSION, IMPLIED_LEVEL)


def uncovered(features: Mapping[str, int], ranges: Iterable[FeatureRange]) -> list[tuple[str, int]]:
    """The finalized levels that `ranges` do not cover, by name. No range of metadata.version means level 1 alone."""
    by_name = {supported.name: supported for supported in (*SUPPORTED_WITHOUT_RANGES, *ranges)}
    levels = {METADATA_VERSION: IMPLIED_LEVEL, **features}
    return [(name, level) for name, level in sorted(levels.items()) if not _covers(by_name.get(name), level)]


def check_supported(name: str, level: int) -> None:
    """Raises UnsupportedMetadata for a finalized level that this software does not support. Level 0: turned off."""
    if level != 0 and (name, level) in uncovered({name: level}, SUPPORTED):
        raise UnsupportedMetadata(f"{name} at level {level}", describe_range(name, SUPPORTED))


def describe_range(name: str, ranges: Iterable[FeatureRange]) -> str:
    """The range of one feature, for people: "metadata.version from level 1 to 2"."""
    found = [supported for supported in (*SUPPORTED_WITHOUT_RANGES, *ranges) if supported.name == name]
    return f"{name} from level {found[-1].min_level} to {found[-1].max_level}" if found else f"no level of {name}"


def _covers(supported: FeatureRange | None, level: int) -> bool:
    return supported is not None and supported.min_level <= level <= supported.max_level
