"""What a group's last decision says to a batch. Pure.

The coordinator of joint transactions has the same checks in the same order (decision 112); a test compares them. The
order is part of the contract: a copied checkpoint must hear that it is a copy, not that its sequence was decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quorumlog.client.joint_errors import refused
from quorumlog.errors import ErrorCode
from quorumlog.records.coordinator.joint import JointKind
from quorumlog.spark.write.delivery import BatchOf
from quorumlog.spark.write.kafka.decisions import NOTHING, Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What the user has excused, each by name; -1 and "" excuse nothing.

    first_batch: that no decision is there for the sequence before this one. checkpoint_moved: that the last decision is
    of this location. replay_mismatch: that the totals of this sequence differ. accept_lost: that part of this sequence
    is lost.
    """

    first_batch: int = -1
    checkpoint_moved: str = ""
    replay_mismatch: int = -1
    accept_lost: int = -1


def check(decision: Decision | None, batch: BatchOf, excused: Overrides) -> bool:
    """True: the sequence is decided. False: it is the next one. Raises JointRefused, as the
    coordinator of joint groups does."""
    if decision is None or decision.sequence == NOTHING:
        _check_following(batch, NOTHING, excused)
        return False
    if batch.kind != decision.kind:
        raise refused(
            ErrorCode.INVALID_REQUEST,
            f"{batch.group} is a group of kind {decision.kind}; a writer of another kind needs another name",
        )
    if batch.location != decision.location and excused.checkpoint_moved != decision.location:
        raise refused(
            ErrorCode.CHECKPOINT_COPIED,
            f"{batch.group} was last decided from {decision.location!r}, and this is {batch.location!r}: a copy has "
            "the same query id, and its rows would vanish. Give the copy a sinkId of its own; if the checkpoint was "
            f"moved, set checkpointMoved={decision.location}",
        )
    if batch.run in decision.superseded:
        raise refused(
            ErrorCode.SUPERSEDED,
            f"run {batch.run} of {batch.group} is over: run {decision.run} has decided sequence {decision.sequence}; "
            "stop this one",
        )
    if batch.sequence < decision.sequence:
        raise refused(
            ErrorCode.CHECKPOINT_ROLLED_BACK,
            f"{batch.group} is at sequence {decision.sequence}, and {batch.sequence} is below it: a checkpoint was "
            "rolled back or begun anew; give the sink a new sinkId or writeId, and it begins anew",
        )
    if batch.sequence == decision.sequence:
        return True
    _check_following(batch, decision.sequence, excused)
    return False


def check_totals(decision: Decision, batch: BatchOf, totals: Mapping[str, int], excused: Overrides) -> None:
    """Of a batch that is decided. Raises ReplayDiffers."""
    if dict(decision.totals) == dict(totals) or excused.replay_mismatch == batch.sequence:
        return
    raise refused(
        ErrorCode.REPLAY_DIFFERS,
        f"batch {batch.sequence} of {batch.group} was decided with {_told(decision.totals)}, and is {_told(totals)} "
        "now: its rows are not the same when they are computed again. What is in the topic stays; if that is right, "
        f"set replayMismatch={batch.sequence}",
    )


def _check_following(batch: BatchOf, last: int, excused: Overrides) -> None:
    if batch.kind != JointKind.STREAM or batch.sequence in (last + 1, excused.first_batch):
        return
    known = "no decision" if last == NOTHING else f"sequence {last} as the last one"
    raise refused(
        ErrorCode.DECISION_MISSING,
        f"{batch.group} has {known}, and this is sequence {batch.sequence}. If what lies between was written elsewhere "
        f"or is not wanted, set firstBatch={batch.sequence}",
    )


def _told(totals: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {totals[name]}" for name in sorted(totals)) or "no totals"
