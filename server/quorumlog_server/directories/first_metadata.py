"""What a new cluster's metadata begins with, where `storage format` was given it: a level of metadata.version, users;
and where a backup is restored, all that it says (`quorumlog_server/restoring/new_metadata.py`).

It stands in `bootstrap.checkpoint`, Kafka's name, beside `meta.properties`: a snapshot with one FeatureLevelRecord and
the users' credentials (KIP-900). The first active controller writes it to the log. Without the file a cluster begins at
the highest level that the software supports. A file in a cluster that has begun has no meaning any more. Only its owner
can read it.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from quorumlog.messages.metadata_records import FeatureLevelRecord, MetadataRecord, UserScramCredentialRecord
from quorumlog.records import CorruptRecords
from quorumlog.security.sasl.scram_format import ScramArgument, make_credential
from quorumlog.security.sasl.scram_mechanism import BY_TITLE, SALT_BYTES
from quorumlog.security.secret import Secret
from quorumlog_quorum.metadata.credentials import credential_record
from quorumlog_quorum.metadata.features import (
    ACCESS_LEVEL,
    LATEST_LEVEL,
    METADATA_VERSION,
    SUPPORTED,
    describe_range,
    uncovered,
)
from quorumlog_quorum.metadata.frame import BadRecord, decode_record, encode_record
from quorumlog_quorum.metadata.snapshot_records import RECORDS_PER_SLICE
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog_quorum.snapshots import SnapshotCheck, SnapshotEncoder, SnapshotHeading, values_of
from quorumlog_server.directories.first_voters import BOOTSTRAP, FormatRefused
from quorumlog_storage.files.atomic import TEMPORARY_SUFFIX, write_atomically
from quorumlog_storage.files.disk import Disk, FileMissing

BOOTSTRAP_NAME = "bootstrap.checkpoint"


FirstUser = tuple[ScramArgument, Secret | None]  # and its password, unless the argument has a salted one


@dataclass(frozen=True, slots=True)
class FirstMetadata:
    """level: of metadata.version; None: the highest. records: what comes behind the levels, encoded."""

    level: int | None = None
    records: tuple[bytes, ...] = ()


class BadFirstMetadata(Exception):
    """The file is not what `storage format` writes."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}; remove it if the cluster has begun, else format an empty directory again")


def check_first_metadata(level: int | None, users: Sequence[FirstUser]) -> None:
    """Raises FormatRefused for a level that this software does not support, or that has no users; and for a credential
    that is given twice."""
    if level is not None and uncovered({METADATA_VERSION: level}, SUPPORTED):
        raise FormatRefused(
            f"metadata.version {level}: this software supports {describe_range(METADATA_VERSION, SUPPORTED)}"
        )
    if users and level is not None and level < ACCESS_LEVEL:
        raise FormatRefused(f"metadata.version {level} has no users; --add-scram needs {ACCESS_LEVEL}")
    keys = [(argument.name, argument.mechanism) for argument, _ in users]
    if len(set(keys)) < len(keys):
        raise FormatRefused("--add-scram names a user twice for the same mechanism")


def write_first_metadata(
    disk: Disk,
    directory: str,
    level: int | None,
    users: Iterable[FirstUser] = (),
    others: Iterable[MetadataRecord] = (),
    *,
    seed: bytes = b"",
    protect: Callable[[str], None] = lambda _path: None,
) -> None:
    """directory: the log directory of the metadata log. Durable when it returns. Raises DiskError.

    seed: the cluster's secret. protect: makes the file readable by its owner only, before anything is in it.
    """
    first = level or LATEST_LEVEL
    records: list[MetadataRecord] = [FeatureLevelRecord(name=METADATA_VERSION, level=first)]
    records += [_user_record(argument, password, seed) for argument, password in users]
    records += others
    encoder = SnapshotEncoder(SnapshotHeading(id=BOOTSTRAP, last_contained_timestamp_ms=0))
    values = [encode_record(record, first) for record in records]
    path = f"{directory}/{BOOTSTRAP_NAME}"
    disk.open(path + TEMPORARY_SUFFIX, create=True).close()
    protect(path + TEMPORARY_SUFFIX)
    write_atomically(disk, path, b"".join(_batches(encoder, values)))


def _batches(encoder: SnapshotEncoder, values: Sequence[bytes]) -> Iterator[bytes]:
    yield encoder.begin()
    for start in range(0, len(values), RECORDS_PER_SLICE):
        yield encoder.values(values[start : start + RECORDS_PER_SLICE])
    yield encoder.end()


def read_first_metadata(disk: Disk, directory: str) -> FirstMetadata:
    """Without the file: nothing. Raises BadFirstMetadata, DiskError."""
    path = f"{directory}/{BOOTSTRAP_NAME}"
    try:
        content = disk.read_bytes(path)
    except FileMissing:
        return FirstMetadata()
    try:
        check = SnapshotCheck(BOOTSTRAP)
        check.take(content)
        check.finish(len(content))
        values = [bytes(value) for value in values_of(content)]
        records = [decode_record(value) for value in values]
    except (CorruptRecords, BadRecord, UnsupportedMetadata) as error:
        raise BadFirstMetadata(path, str(error)) from error
    levels = [one.level for one in records if isinstance(one, FeatureLevelRecord) and one.name == METADATA_VERSION]
    if not levels:
        raise BadFirstMetadata(path, f"it names no level of {METADATA_VERSION}")
    others = [
        value
        for value, one in zip(values, records, strict=True)
        if not (isinstance(one, FeatureLevelRecord) and one.name == METADATA_VERSION)
    ]
    return FirstMetadata(levels[0], tuple(others))


def _user_record(argument: ScramArgument, password: Secret | None, seed: bytes) -> UserScramCredentialRecord:
    """A salt that is not given is made from the seed, so that every voter begins with the same record."""
    salt = hmac.digest(seed, f"first user {argument.mechanism} {argument.name}".encode(), "sha256")[:SALT_BYTES]
    credential = make_credential(argument, password, salt)
    return credential_record(argument.name, BY_TITLE[argument.mechanism], credential)
