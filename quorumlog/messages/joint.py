"""Joint transactions: many producers write a batch, and the coordinator decides all of it in one record.

docs/decisions/0112-decide-a-whole-batch-in-one-record.md. None of these calls is Kafka's; the coordinator of the
group's name answers them.

Written by `./dev proto` from proto/quorumlog/v1/joint.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class BeginJointRequest:
    """Begin a child of the batch, or get it again by its token.

    kind: 0: a stream, 1: versioned, 2: a single batch.
    location: Of the checkpoint; empty where there is none.
    token: Drawn at random by each attempt.
    first_batch: Excuses that no decision is there for the sequence before this one; -1: nothing.
    checkpoint_moved: Excuses that the last decision is of this location; empty: nothing.
    """

    group_id: str
    kind: int = 0
    location: str = ""
    run: str
    sequence: int
    token: bytes
    timeout_ms: int
    first_batch: int = -1
    checkpoint_moved: str = ""


@message(frozen=True, slots=True, kw_only=True)
class BeginJointResponse:
    """decided: the sequence is, and there is no child."""

    error_code: int = 0
    error_message: str = ""
    decided: bool = False
    slot: int = -1
    transactional_id: str = ""
    producer_id: int = -1
    producer_epoch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class JointChildRef:
    slot: int
    producer_epoch: int
    token: bytes


@message(frozen=True, slots=True, kw_only=True)
class JointFact:
    name: str
    value: int


@message(frozen=True, slots=True, kw_only=True)
class CommitJointRequest:
    """Decide the batch: these children commit, and all others of the group that are open abort.

    facts: Totals of the batch, which one that is replayed is compared with; each name once.
    commit_wait_ms: How long the answer waits for the markers; at most 10 s.
    replay_mismatch: Excuses that the facts of this sequence are others than those that were decided; -1: nothing.
    """

    group_id: str
    kind: int = 0
    location: str = ""
    run: str
    sequence: int
    children: tuple[JointChildRef, ...] = ()
    facts: tuple[JointFact, ...] = ()
    commit_wait_ms: int = 0
    first_batch: int = -1
    checkpoint_moved: str = ""
    replay_mismatch: int = -1


@message(frozen=True, slots=True, kw_only=True)
class CommitJointResponse:
    """complete: every marker of the group's commits is written. Otherwise the batch is decided, and the coordinator
    goes on.
    """

    error_code: int = 0
    error_message: str = ""
    complete: bool = False


@message(frozen=True, slots=True, kw_only=True)
class AbortJointRequest:
    """Abort open children of a batch that is not decided.

    run: Empty: of any run.
    token: Empty: of any attempt.
    """

    group_id: str
    location: str = ""
    run: str = ""
    sequence: int
    token: bytes = b""


@message(frozen=True, slots=True, kw_only=True)
class AbortJointResponse:
    """decided: the sequence is, and nothing was done. aborted: children."""

    error_code: int = 0
    error_message: str = ""
    decided: bool = False
    aborted: int = 0


@message(frozen=True, slots=True, kw_only=True)
class ListedJointGroup:
    """Of a partition of __transaction_state; groups with open children are listed before their first decision, too.

    sequence: -1: nothing is decided, and the kind, the run and the location are not known.
    ending: Children whose markers are not all written.
    """

    group_id: str
    sequence: int = -1
    kind: int = 0
    run: str = ""
    location: str = ""
    decided_at_ms: int = -1
    facts: tuple[JointFact, ...] = ()
    open: tuple[OpenJointChild, ...] = ()
    ending: int = 0


@message(frozen=True, slots=True, kw_only=True)
class OpenJointChild:
    transactional_id: str
    run: str
    sequence: int
    started_at_ms: int
    timeout_ms: int
    location: str


@message(frozen=True, slots=True, kw_only=True)
class ForgetJointRequest:
    """Forget a group's last decision. Refused while anything of it is open."""

    group_id: str


@message(frozen=True, slots=True, kw_only=True)
class ForgetJointResponse:
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class ListJointRequest:
    """Of the answering broker's own coordinators."""


@message(frozen=True, slots=True, kw_only=True)
class ListJointResponse:
    """joint_version: the level of the feature that the answering broker knows."""

    error_code: int = 0
    error_message: str = ""
    groups: tuple[ListedJointGroup, ...] = ()
    joint_version: int = 0
