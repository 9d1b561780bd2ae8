"""Feature levels (KIP-584): which formats the cluster writes, and which of them this software supports.

A FeatureLevelRecord finalizes a level: from that record on, the cluster uses it. Each broker registers with the range
of levels that its software supports; a node whose ranges do not cover a finalized level must not take part.

`metadata.version` decides in which version each metadata record is written (frame.py):

    1  the records of logs that name no level: the formats before there were levels
    2  RegisterBrokerRecord 1, which carries the broker's feature ranges
    3  RegisterControllerRecord, UnregisterControllerRecord: the feature ranges of controllers;
       DeletedTopicRecord, ForgetDeletedTopicsRecord: deleted topics are remembered;
       ClusterIncarnationRecord
    4  partitions in the state IMPORTING, which older software takes for damage
    5  access rules, SCRAM credentials and client quotas (access.py)
    6  BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord: changes larger than a batch;
       delegation tokens (access.py), which nothing issues yet
    7  RegisterBrokerRecord 2, BrokerRegistrationChangeRecord 1: the cordoned directories of brokers (KIP-1066)
    8  ChangedByRecord: who asked for a change, from where (decision 134)

Other features may be off (level 0), and software from before them does not know their names:

    group.version        1  the consumer protocol of KIP-848
    transaction.version  1  records of __transaction_state with tagged fields (KIP-890); 0: without
                         2  a producer gets an epoch for each transaction (KIP-890, part 2)
    joint.version        1  joint transactions that are open may be ended, and none begins (decision 112)
                         2  joint transactions; they need transaction.version 2
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from quorumlog.messages.common import FeatureRange
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata

METADATA_VERSION = "metadata.version"
GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
JOINT_VERSION = "joint.version"
KRAFT_VERSION = "kraft.version"  # of the quorum's log and not of the image (KIP-853): 1: it holds the voters
KRAFT_VERSIONS = FeatureRange(name=KRAFT_VERSION, min_level=0, max_level=1)
IMPLIED_LEVEL = 1  # of metadata.version where no record names one
LATEST_LEVEL = 8  # of metadata.version; a new cluster begins with it
INCARNATION_LEVEL = 3  # of metadata.version; the first that has ClusterIncarnationRecord
IMPORT_LEVEL = 4  # of metadata.version; the first in which topics are imported
ACCESS_LEVEL = 5  # of metadata.version; the first that has access rules, SCRAM credentials and client quotas
TRANSACTION_LEVEL = 6  # of metadata.version; the first that has metadata transactions
CORDON_LEVEL = 7  # of metadata.version; the first in which the controller knows cordoned directories
CHANGED_BY_LEVEL = 8  # of metadata.version; the first in which a change says who asked for it
JOINT_ENDS, JOINT_BEGINS = 1, 2  # of joint.version: the first levels in which joint transactions end and begin
JOINT_TRANSACTIONS = 2  # of transaction.version; the first in which joint.version may be on
OTHERS_LEVEL = 3  # of metadata.version; the first in which other features may be on: every node's ranges are in the log

# In the order of names. A range begins at 1, as software before these features demands of a registration; 0 is off.
SUPPORTED = (
    FeatureRange(name=GROUP_VERSION, min_level=1, max_level=1),
    FeatureRange(name=JOINT_VERSION, min_level=JOINT_ENDS, max_level=JOINT_BEGINS),
    FeatureRange(name=METADATA_VERSION, min_level=IMPLIED_LEVEL, max_level=LATEST_LEVEL),
    FeatureRange(name=TRANSACTION_VERSION, min_level=1, max_level=2),
)
SUPPORTED_WITHOUT_RANGES = (FeatureRange(name=METADATA_VERSION, min_level=IMPLIED_LEVEL, max_level=IMPLIED_LEVEL),)


def metadata_version(features: Mapping[str, int]) -> int:
    """The level in force. features: the finalized levels by name, as an image holds them."""
    return features.get(METADATA_VERSION, IMPLIED_LEVEL)


def first_levels(supported: Iterable[FeatureRange], first_level: int | None = None) -> dict[str, int]:
    """What a new cluster begins with, in the order of writing. first_level: of metadata.version, if not the highest.

    metadata.version comes first: it decides whether the others may be on.
    """
    ranges = tuple(supported)
    level = first_level or highest_level(METADATA_VERSION, ranges)
    others = {one.name: one.max_level for one in ranges if one.name != METADATA_VERSION}
    return {METADATA_VERSION: level, **(others if level >= OTHERS_LEVEL else {})}


def mapped_levels(release: int) -> dict[str, int]:
    """The level of every feature that goes with a level of metadata.version, which comes first; 0: off.

    release: a level that SUPPORTED covers. kraft.version is the highest: only `storage format` and a change of its own
    decide it. Source: KIP-1022's version-mapping.
    """
    levels = first_levels(SUPPORTED, release)
    others = {one.name: levels.get(one.name, 0) for one in SUPPORTED if one.name != METADATA_VERSION}
    return {METADATA_VERSION: levels[METADATA_VERSION], KRAFT_VERSION: KRAFT_VERSIONS.max_level, **others}


def needs(name: str, level: int) -> dict[str, int]:
    """The lowest levels of other features that this level needs in force. Source: KIP-1022's dependencies.

    name, level: of any feature but metadata.version and kraft.version, which need none; 0: off, which needs none.
    """
    if level == 0 or name in (METADATA_VERSION, KRAFT_VERSION):
        return {}
    joint = {TRANSACTION_VERSION: JOINT_TRANSACTIONS} if name == JOINT_VERSION else {}
    return {METADATA_VERSION: OTHERS_LEVEL, **joint}


def as_shown(supported: FeatureRange) -> FeatureRange:
    """For people and clients, to whom 0 is a level of a feature that may be off."""
    return supported if supported.name == METADATA_VERSION else replace(supported, min_level=0)


def uncovered(features: Mapping[str, int], ranges: Iterable[FeatureRange]) -> list[tuple[str, int]]:
    """The finalized levels that `ranges` do not cover: metadata.version, then by name. No range of metadata.version
    means level 1 alone."""
    by_name = {supported.name: supported for supported in (*SUPPORTED_WITHOUT_RANGES, *ranges)}
    levels = {METADATA_VERSION: IMPLIED_LEVEL, **features}
    return [(name, level) for name, level in sorted(levels.items(), key=_turn) if not _covers(by_name.get(name), level)]


def check_supported(name: str, level: int, supported: Iterable[FeatureRange] = SUPPORTED) -> None:
    """Raises UnsupportedMetadata for a finalized level that is not supported. Level 0: turned off."""
    ranges = tuple(supported)
    if level != 0 and (name, level) in uncovered({name: level}, ranges):
        raise UnsupportedMetadata(f"{name} at level {level}", describe_range(name, ranges))


def highest_level(name: str, ranges: Iterable[FeatureRange]) -> int:
    """Of a feature in these ranges; 0 if it is not among them."""
    return max((supported.max_level for supported in ranges if supported.name == name), default=0)


def describe_range(name: str, ranges: Iterable[FeatureRange]) -> str:
    """The range of one feature, for people: "metadata.version from level 1 to 2"."""
    found = [as_shown(supported) for supported in (*SUPPORTED_WITHOUT_RANGES, *ranges) if supported.name == name]
    return f"{name} from level {found[-1].min_level} to {found[-1].max_level}" if found else f"no level of {name}"


def _turn(level: tuple[str, int]) -> tuple[bool, str]:
    return level[0] != METADATA_VERSION, level[0]


def _covers(supported: FeatureRange | None, level: int) -> bool:
    return supported is not None and supported.min_level <= level <= supported.max_level
