"""Forgets deleted topics once no registered broker holds a directory of them
(quorumlog_quorum/metadata/deleted_topics.py).

Each heartbeat says below which offset its broker has carried out all deletions. A broker that is down, fenced or has an
offline directory says nothing, and holds this up; an unregistered one does not. A new controller knows nothing until
every broker has sent it a heartbeat.
"""

from __future__ import annotations

from quorumlog.messages.metadata_records import ForgetDeletedTopicsRecord
from quorumlog_quorum.controller.engine.draft import Draft

FORGET_INTERVAL_MS = 1_000  # between two records
MAX_FORGOTTEN_AT_ONCE = 500  # 8 KiB in one record


def forget_deleted(draft: Draft) -> None:
    """Add a record if one may be written now. The oldest come first."""
    state, image = draft.state, draft.image
    if not image.deleted or (state.forgot_ms is not None and draft.now_ms < state.forgot_ms + FORGET_INTERVAL_MS):
        return
    before = state.sessions.deletions_done_before(image.brokers)
    if not before:
        return
    draft.spend(len(image.deleted))
    done = sorted((one.offset, topic_id) for topic_id, one in image.deleted.items() if one.offset < before)
    if done:
        state.forgot_ms = draft.now_ms
        draft.add(ForgetDeletedTopicsRecord(topic_ids=tuple(topic_id for _, topic_id in done[:MAX_FORGOTTEN_AT_ONCE])))
