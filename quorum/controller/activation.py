"""What a controller writes when it becomes active and finds that it is missing."""

from __future__ import annotations

from quorum.controller.draft import Draft
from quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT
from quorumlog.messages.metadata_records import ConfigRecord

MIN_ISR = "min.insync.replicas"


def activate(draft: Draft) -> None:
    """Put the cluster's default of min.insync.replicas into the log, once, and hold the elections that are missing.

    Elections depend on that setting (KIP-966): if each controller read it from its own file, a new controller with
    another file would judge the same partition differently.
    """
    cluster = draft.image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT))
    if cluster is None or MIN_ISR not in cluster:
        draft.add(
            ConfigRecord(
                resource_type=BROKER_RESOURCE,
                resource_name=CLUSTER_DEFAULT,
                name=MIN_ISR,
                value=str(draft.state.config.min_insync_replicas),
            )
        )
    draft.state.elections_wanted = True
