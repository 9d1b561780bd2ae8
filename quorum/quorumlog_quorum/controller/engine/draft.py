"""The records of one slice of an operation, and the image as they will leave it.

An operation reads `image`, calls `add`, and writes nothing else to the cluster's state. When the draft is `full` it
yields: the records so far are appended, other operations run, and then the draft begins again on the new tip.
Whatever the operation has read before must be read again then.
"""

from __future__ import annotations

from immutables import Map

from quorumlog.ids import NodeId, Offset
from quorumlog.messages.metadata_records import FeatureLevelRecord, MetadataRecord
from quorumlog.security.quota.mutations import UNLIMITED, Permits
from quorumlog_quorum.controller.engine.controller_state import ControllerState
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.registration import BrokerRegistration

# Work is measured in partitions looked at, some 2 us each. A slice ends at the first chance once it has done
# `max_slice_work`: 5,000 are some 10 ms.
WORK_OF_A_RECORD = 25  # deciding, replaying and encoding it
WORK_OF_A_TOPIC = 10  # finding it and reading its settings


class Draft:
    def __init__(
        self, state: ControllerState, base: Image = EMPTY, now_ms: int = 0, permits: Permits = UNLIMITED
    ) -> None:
        """Begins the first slice. permits: what a client may make and delete."""
        self.state, self._permits = state, permits
        self.begin(base, now_ms)

    def begin(self, base: Image, now_ms: int) -> None:
        """Begin the next slice. base: the tip."""
        self.now_ms = now_ms
        self.level = base.metadata_version  # decides in which version the next record is written
        self.delta = Delta(base)
        self.records: list[MetadataRecord] = []
        self.values: list[bytes] = []  # the same records, encoded
        self._image: Image | None = base  # of these records; None: nobody has asked for it
        self._work = 0

    def preview(self) -> Draft:
        """A draft on the same image. Its records are not appended."""
        return Draft(self.state, self.image, self.now_ms, self._permits)

    def of_new_topics(self) -> Draft:
        """A draft on the empty image, for records that create topics. `adopt` adds them to this one."""
        draft = Draft(self.state)
        draft.level = self.level
        return draft

    @property
    def image(self) -> Image:
        if self._image is None:
            self._image = self.delta.apply(self.delta.base.offset, self.delta.base.epoch)
        return self._image

    @property
    def brokers(self) -> Map[NodeId, BrokerRegistration]:
        """The brokers as they will be once the operations under way have ended."""
        return self.state.pending.brokers(self.image)

    @property
    def next_offset(self) -> Offset:
        """Where the next record will be appended."""
        return self.delta.base.offset + len(self.records)

    @property
    def full(self) -> bool:
        return self._work >= self.state.config.max_slice_work

    def spend(self, work: int) -> None:
        self._work += work

    def charge(self, topic: str, partitions: int) -> None:
        """Count them for the client's quota. Raises ApiError(THROTTLING_QUOTA_EXCEEDED)."""
        self._permits.spend(topic, partitions, self.now_ms)

    def add(self, record: MetadataRecord) -> None:
        self._work += WORK_OF_A_RECORD
        self._image = None
        self.delta.replay(record)
        self.records.append(record)
        self.values.append(encode_record(record, self.level))
        if isinstance(record, FeatureLevelRecord):
            self.level = self.delta.metadata_version  # from the next record on

    def adopt(self, new_topics: Draft) -> None:
        """Add all its records. They are replayed and encoded already, so this costs a few steps for each topic.

        new_topics: from `of_new_topics`; none of them exists here.
        """
        self._image = None
        self.delta.adopt(new_topics.delta)
        self.records += new_topics.records
        if new_topics.level == self.level:
            self.values += new_topics.values
        else:  # the level was changed since they were encoded
            self.values += [encode_record(record, self.level) for record in new_topics.records]

    def adopt_access(self, aside: Draft) -> bool:
        """Add all its records, which are replayed and encoded already. False: they do not fit any more.

        aside: a `preview` of an earlier slice; its records make and remove rules, credentials and quotas.
        """
        if aside.delta.base.access is not self.image.access or aside.level != self.level:
            return False
        self._image = None
        self.delta.adopt_access(aside.delta)
        self.records += aside.records
        self.values += aside.values
        return True

    def topic_config(self, name: str) -> dict[str, str]:
        """Settings of a topic, over the cluster-wide ones, as they will be once the operations under way have ended."""
        return self.state.pending.topic_config(self.image, name)
