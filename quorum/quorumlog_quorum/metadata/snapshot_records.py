"""An image as the record values of a snapshot, and an image built again from them. Both in bounded slices.

    for values in slices_of(image): ...              # a snapshot's data batches, one list each
    builder = ImageBuilder()
    for values in batches:
        yield from builder.add(values)               # steps
    delta = builder.finish()                         # from the empty image

The values come in the order of `records_of`, and are written at the image's own level of metadata.version. The last one
is a SnapshotStateRecord: the state hash, and the number of records before it. It is a record like the others, so that
Kafka's tools read the file. Whatever the values are that were read back, the image in them is that one or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from quorumlog.messages.common import FeatureRange
from quorumlog.messages.metadata_records import SnapshotStateRecord
from quorumlog.slices import Sliced
from quorumlog_quorum.metadata.batches import understood
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.partition_values import PARTITION_HEADER, PartitionReader
from quorumlog_quorum.metadata.records_of import records_of

RECORDS_PER_SLICE = 200  # to encode one takes some 10 us
RECORDS_PER_STEP = 400  # to decode and replay one takes some 10 us


class WrongState(Exception):
    """The records of a snapshot do not make the image that it was taken of: it is corrupt."""


def slices_of(image: Image, records_per_slice: int = RECORDS_PER_SLICE) -> Iterator[list[bytes]]:
    """Lists of 1 to `records_per_slice` record values each."""
    level = image.metadata_version
    records = records_of(image)
    count = 0
    while values := [encode_record(record, level) for record in islice(records, records_per_slice)]:
        count += len(values)
        yield values
    yield [encode_record(SnapshotStateRecord(state_hash=image.state_hash_bytes, records=count), level)]


class ImageBuilder:
    """Takes the values of a snapshot in order. After an error it must not be used.

    The errors are WrongState, BadRecord and ReplayError for a corrupt snapshot, UnsupportedMetadata for one of newer
    software.
    """

    def __init__(self, supported: tuple[FeatureRange, ...] = SUPPORTED) -> None:
        """supported: the feature levels of this node's software."""
        self._supported = supported
        self._delta = Delta(EMPTY)
        self._partitions = PartitionReader()
        self._records = 0
        self.partitions = 0  # taken so far
        self._state: SnapshotStateRecord | None = None  # the last record

    def add(self, values: Iterable[bytes]) -> Sliced[None]:
        """In steps of RECORDS_PER_STEP."""
        for number, value in enumerate(values, 1):
            self._take(value)
            if number % RECORDS_PER_STEP == 0:
                yield

    def finish(self) -> Delta:
        """The delta from the empty image to that of the snapshot. A snapshot without values is of the empty image."""
        if self._state is None and self._records:
            raise WrongState(f"the snapshot has {self._records} records, and no SnapshotStateRecord after them")
        state_hash = self._delta.state_hash.to_bytes(16, "big")
        if self._state is not None and self._state.state_hash != state_hash:
            raise WrongState(f"its records give the state hash {state_hash.hex()}, not {self._state.state_hash.hex()}")
        return self._delta

    def _take(self, value: bytes) -> None:
        if self._state is not None:
            raise WrongState("a record follows the SnapshotStateRecord")
        if value.startswith(PARTITION_HEADER) and self._delta.add_partition(*self._partitions.read(value)):
            self._records += 1
            self.partitions += 1
            return
        record = understood(value, self._supported)
        if isinstance(record, SnapshotStateRecord):
            if record.records != self._records:
                raise WrongState(f"{record.records} records were written, {self._records} are there")
            self._state = record
        else:
            self._delta.replay(record)
            self._records += 1
