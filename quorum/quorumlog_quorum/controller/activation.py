"""The records that a controller writes when it becomes active and finds them missing."""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    ClusterIncarnationRecord,
    ConfigRecord,
    FeatureLevelRecord,
)
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.metadata.features import INCARNATION_LEVEL, first_levels
from quorumlog_quorum.metadata.frame import decode_record
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, Image

MIN_ISR = "min.insync.replicas"


def activate(draft: Draft) -> None:
    """Write what a new cluster begins with: the levels of its features, its first users, and its default of
    min.insync.replicas.

    A cluster that was recovered at a level without a record for its incarnation gets that record at the first
    activation after the upgrade.

    A log that holds something and names no level was begun before there were feature levels: it stays at level 1.
    Elections depend on min.insync.replicas (KIP-966). If each controller took it from its own file, two controllers
    with different files would judge the same partition differently. So it is with the rest of DECIDED_TOGETHER, as far
    as the file has them. All are written once, in the first activation of all: otherwise a value that was taken back,
    or was never set, would come from the file of whoever is active next (decision 114). Elections that are missing are
    held afterwards.
    """
    if _is_new(draft.image):
        for name, level in first_levels(draft.state.supported, draft.state.config.first_level).items():
            draft.add(FeatureLevelRecord(name=name, level=level))
        for encoded in draft.state.config.first_records:
            draft.add(decode_record(encoded))
    incarnation = draft.state.incarnation
    if incarnation.number > draft.image.incarnation.number and draft.level >= INCARNATION_LEVEL:
        draft.add(ClusterIncarnationRecord(number=incarnation.number, id=incarnation.id))
    if not has_adopted(draft.image):
        config = draft.state.config
        cluster: Mapping[str, str] = draft.image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
        _set_for_all(draft, MIN_ISR, str(config.min_insync_replicas))
        draft.state.minimum_raised_end = draft.next_offset
        for name, value in sorted(config.decided_together.items()):
            if name != MIN_ISR and name not in cluster:
                _set_for_all(draft, name, value)
    draft.state.elections_wanted = True


def has_adopted(image: Image) -> bool:
    """Whether a controller has written what its file says of DECIDED_TOGETHER: the minimum is never taken back."""
    return MIN_ISR in image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})


def _set_for_all(draft: Draft, name: str, value: str) -> None:
    draft.add(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=CLUSTER_DEFAULT, name=name, value=value))


def abort_transaction(draft: Draft) -> None:
    """The controller that began the transaction cannot end it any more: this one leads a later epoch (KIP-866)."""
    draft.add(AbortTransactionRecord(reason="another controller became active"))


def _is_new(image: Image) -> bool:
    """Whether no controller has written anything yet. The first activation of each cluster writes a config."""
    return not (image.configs or image.brokers or image.topics or image.features)
