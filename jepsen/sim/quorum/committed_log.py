"""The committed metadata log, replayed by the simulation itself from offset 0, batch by batch, as it is committed.

It is the second answer for everything that a node derives from the log: the state hash at each offset, and the values
of each key that clients were told of.
"""

from __future__ import annotations

from collections.abc import Mapping

from immutables import Map

from jepsen.checkers.findings import Findings
from jepsen.linear.sequential import Versions
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.truth.log_mirror import LogMirror
from quorumlog.ids import Epoch, Offset
from quorumlog.records import headers
from quorumlog_quorum.metadata.batches import metadata_records
from quorumlog_quorum.metadata.check import violations
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, EMPTY, TOPIC_RESOURCE, Image
from quorumlog_quorum.metadata.transactions import HeldBack, replayable

ABSENT_VERSION = "absent"  # of a topic, in `topics`


class CommittedLog(Invariant):
    """image: of everything that is committed. changes: committed batches that hold metadata.

    topics: the id of each name, in hex. settings: of all brokers (`key`) and of topics (`topic/key`); "": not set.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.image = EMPTY
        self.changes = 0
        self._held_back = HeldBack()
        self.topics, self.settings = Versions(ABSENT_VERSION), Versions()
        self.epochs: dict[Epoch, None] = {}  # those of which something is committed
        self._hashes: dict[Offset, int] = {0: EMPTY.state_hash}

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"committed changes": self.changes}

    def on_growth(self, mirror: LogMirror, before: Offset, after: Offset) -> None:
        content = mirror.content(before, after)
        assert content is not None, f"{mirror.path}: no bytes from {before} to {after}"
        for header in headers(content):
            delta, known = Delta(self.image), self.image
            self.epochs[header.leader_epoch] = None
            records = metadata_records(content, header, self.image.offset, delta)
            for delta.next_offset, record in replayable(records, header, self._held_back):
                delta.replay(record)
            self.image = delta.apply(header.next_offset, header.leader_epoch)
            if self._held_back.is_open:
                continue  # no image may end here
            self._hashes[self.image.offset] = self.image.state_hash
            if self.image.state_hash != known.state_hash:
                self.changes += 1
                self._note(known, self.image)
                for violation in violations(self.image):
                    self._findings.broken("metadata-structure", f"the log at {self.image.offset}: {violation}")

    def on_published(self, host: str, image: Image) -> None:
        """Whether the node replayed the log or began with a snapshot."""
        want = self._hashes.get(image.offset)
        if want is None:
            what = f"{host} publishes an image at {image.offset}, where no batch ends, or inside a transaction"
            self._findings.broken("image-at-a-batch", what)
        elif want != image.state_hash:
            what = f"the image of {host} at {image.offset} is not what the log gives"
            self._findings.broken("image-equals-replay", what)

    def hash_at(self, offset: Offset) -> int | None:
        """The state hash; None if no committed batch ends there, or inside a transaction."""
        return self._hashes.get(offset)

    def _note(self, before: Image, after: Image) -> None:
        end = after.offset
        if before.topic_ids is not after.topic_ids:
            for name in sorted({*before.topic_ids, *after.topic_ids}):
                topic_id = after.topic_ids.get(name)
                self.topics.write(name, ABSENT_VERSION if topic_id is None else topic_id.hex(), end)
        if before.configs is not after.configs:
            for resource in sorted({*before.configs, *after.configs}):
                old, new = before.configs.get(resource, Map()), after.configs.get(resource, Map())
                if old is not new:
                    for key in sorted({*old, *new}):
                        self.settings.write(setting_name(resource, key), new.get(key, ""), end)


def setting_name(resource: tuple[int, str], key: str) -> str:
    if resource == (BROKER_RESOURCE, CLUSTER_DEFAULT):
        return key
    kind, name = resource
    return f"{name}/{key}" if kind == TOPIC_RESOURCE else f"broker {name}/{key}"
