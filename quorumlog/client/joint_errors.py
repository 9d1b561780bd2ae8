"""What the caller of a joint group's calls is told (decision 112).

The class says which rule has spoken; the text is the coordinator's, with the names of Spark's options.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.client.errors import QuorumlogError, RequestFailed
from quorumlog.errors import ErrorCode

NO_JOINT = "the cluster has no joint transactions, by which a batch is written exactly once"
NOT_OURS = f"{NO_JOINT}: it is an Apache Kafka, or a quorumlog that is older than they are"


class NoJointTransactions(QuorumlogError):
    """The cluster has none: it is an Apache Kafka, is older, or its feature is not in force."""


class JointRefused(RequestFailed):
    """The coordinator has refused a BeginJoint, a CommitJoint or a ForgetJoint. Nothing was decided by it."""


class CheckpointCopied(JointRefused):
    """Another checkpoint location than that of the last decision."""


class Superseded(JointRefused):
    """Another run of the same query has decided since. This one never decides anything."""


class CheckpointRolledBack(JointRefused):
    """The sequence lies below the last decision's."""


class DecisionMissing(JointRefused):
    """A stream's sequence is above the one that follows the last decision."""


class ReplayDiffers(JointRefused):
    """The sequence was decided with other totals. What was decided stays."""


class ChildNotOpen(JointRefused):
    """A child has ended, or was never given to this attempt."""


class TooManyChildren(JointRefused):
    """One decision cannot hold as many."""


class JointGroupOpen(JointRefused):
    """A group is not forgotten while anything of it is open."""


OF_CODE: Mapping[ErrorCode, type[JointRefused]] = {
    ErrorCode.CHECKPOINT_COPIED: CheckpointCopied,
    ErrorCode.SUPERSEDED: Superseded,
    ErrorCode.CHECKPOINT_ROLLED_BACK: CheckpointRolledBack,
    ErrorCode.DECISION_MISSING: DecisionMissing,
    ErrorCode.REPLAY_DIFFERS: ReplayDiffers,
    ErrorCode.CHILD_NOT_OPEN: ChildNotOpen,
    ErrorCode.TOO_MANY_CHILDREN: TooManyChildren,
    ErrorCode.JOINT_GROUP_OPEN: JointGroupOpen,
}


def refused(code: ErrorCode, message: str) -> JointRefused:
    return OF_CODE.get(code, JointRefused)(code, message)
