"""What a joint group's last decision says to a BeginJoint or a CommitJoint, and which requests are none.

The order of the checks is part of the contract (decision 112): a copied checkpoint must hear that it is a copy, and not
that its sequence was decided, because its rows would vanish silently.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import AbortJointRequest, BeginJointRequest, CommitJointRequest
from quorumlog.records.coordinator.joint import JointKind, JointValue
from quorumlog_broker.coordinator.transactions.state.states import States
from quorumlog_quorum.metadata.features import JOINT_BEGINS, JOINT_TRANSACTIONS, JOINT_VERSION

MAX_CHILDREN = 160_000  # of a decision: 6 bytes each, below the largest record of the topic
MAX_SUPERSEDED = 64  # runs that a group remembers
MAX_COMMIT_WAIT_MS = 10_000
MAX_GROUP_BYTES, MAX_LOCATION_BYTES, MAX_RUN_BYTES, MAX_TOKEN_BYTES = 1_000, 4_000, 200, 64
MAX_FACTS, MAX_FACT_NAME_BYTES = 16, 64
KINDS = frozenset(JointKind)


class Refusal(NamedTuple):
    code: ErrorCode
    text: str


# --- requests that are none ---


def invalid_begin(request: BeginJointRequest, max_timeout_ms: int) -> Refusal | None:
    found = _invalid(request)
    if found is None and not 0 < len(request.token) <= MAX_TOKEN_BYTES:
        found = f"a token has 1 to {MAX_TOKEN_BYTES} bytes, and this one {len(request.token)}"
    if found is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, found)
    if not 0 < request.timeout_ms <= max_timeout_ms:
        text = f"transactionTimeout is {request.timeout_ms} ms; it is 1 to {max_timeout_ms} (joint.max.timeout.ms)"
        return Refusal(ErrorCode.INVALID_TRANSACTION_TIMEOUT, text)
    return None


def invalid_commit(request: CommitJointRequest) -> Refusal | None:
    """Beside the children, which may be many."""
    found = _invalid(request)
    names = [fact.name for fact in request.facts]
    if found is None and (len(names) > MAX_FACTS or len(set(names)) < len(names)):
        found = f"{len(names)} facts; there are {MAX_FACTS} at most, each once"
    if found is None:
        found = _too_long([("the name of a fact", name, MAX_FACT_NAME_BYTES) for name in names])
    return None if found is None else Refusal(ErrorCode.INVALID_REQUEST, found)


def invalid_abort(request: AbortJointRequest) -> Refusal | None:
    found = _too_long([("the group", request.group_id, MAX_GROUP_BYTES)])
    if not request.group_id:
        found = "the group has no name"
    return None if found is None else Refusal(ErrorCode.INVALID_REQUEST, found)


def no_room(groups: int, limit: int) -> Refusal | None:
    """For one more group: each call that would make one asks."""
    if groups < limit:
        return None
    text = (
        f"there are {groups} joint groups in this partition of the coordinators, {limit} are the limit "
        "(joint.max.groups). A batch write without a writeId has a group of its own for 24 hours: name repeated "
        "writes (writeId and writeVersion), so that they share one; have what is over forgotten (quorumlog spark sink "
        "list, and forget); or raise the limit"
    )
    return Refusal(ErrorCode.POLICY_VIOLATION, text)


def _invalid(request: BeginJointRequest | CommitJointRequest) -> str | None:
    if not request.group_id or not request.run:
        return "the group and the run need names"
    if request.kind not in KINDS:
        return f"kind {request.kind} is not known; upgrade the brokers"
    if request.sequence < 0 or (request.kind == JointKind.SINGLE and request.sequence != 0):
        return f"sequence {request.sequence}: it begins at 0, and a single batch has no other"
    return _too_long(
        [
            ("the group", request.group_id, MAX_GROUP_BYTES),
            ("the location", request.location, MAX_LOCATION_BYTES),
            ("the run", request.run, MAX_RUN_BYTES),
        ]
    )


def _too_long(named: Iterable[tuple[str, str, int]]) -> str | None:
    for what, text, limit in named:
        size = len(text.encode())
        if size > limit:
            return f"{what} has {size} bytes; {limit} are the limit"
    return None


# --- while the group cannot be asked ---


def too_low(states: States, needed: int) -> Refusal | None:
    """needed: of the feature joint.version. An older coordinator of the partition would not know of what begins now."""
    level = states.joint_version()
    if level >= needed:
        return None
    text = (
        f"{JOINT_VERSION} is {level}, and this takes {needed}. Once every node runs this software: quorumlog feature "
        f"upgrade {JOINT_VERSION}={JOINT_BEGINS} (it needs transaction.version {JOINT_TRANSACTIONS})"
    )
    return Refusal(ErrorCode.UNSUPPORTED_VERSION, text)


def cannot_be_asked(group_id: str, states: States) -> Refusal | None:
    """While it is loaded, or its last record is not committed; None: it can be asked."""
    error = states.refusal(group_id)
    return None if error == ErrorCode.NONE else Refusal(error, f"{group_id} cannot be asked now; try again soon")


# --- against the last decision ---


def check(decision: JointValue | None, request: BeginJointRequest | CommitJointRequest) -> Refusal | bool:
    """True: the sequence is decided. False: it is the next one."""
    group, sequence = request.group_id, request.sequence
    if decision is None:
        return _missing(request, last=None) or False
    if request.kind != decision.kind:
        text = f"{group} is a {_named(decision.kind)} group; a writer of another kind needs another name"
        return Refusal(ErrorCode.INVALID_REQUEST, text)
    if request.location != decision.location and request.checkpoint_moved != decision.location:
        return _copied(request, decision)
    if request.run in decision.superseded:
        text = f"run {request.run} of {group} is over: run {decision.run} has decided sequence {decision.sequence}"
        return Refusal(ErrorCode.SUPERSEDED, text)
    if sequence < decision.sequence:
        text = (
            f"{group} is at sequence {decision.sequence}, and {sequence} is below it: a checkpoint was rolled "
            f"back or begun anew; give the sink a new {_new_name(request)}, and it begins anew"
        )
        return Refusal(ErrorCode.CHECKPOINT_ROLLED_BACK, text)
    if sequence == decision.sequence:
        return True
    return _missing(request, last=decision.sequence) or False


def _named(kind: int) -> str:
    """Newer software may have written it."""
    return JointKind(kind).name.lower() if kind in KINDS else f"kind {kind}"


def _new_name(request: BeginJointRequest | CommitJointRequest) -> str:
    """By which the writer begins anew where it is now: a group without a decision begins at 0, unless it is told."""
    if request.kind != JointKind.STREAM:
        return "writeId"
    return f"sinkId and firstBatch={request.sequence}" if request.sequence else "sinkId"


def _copied(request: BeginJointRequest | CommitJointRequest, decision: JointValue) -> Refusal:
    text = (
        f"{request.group_id} was last decided from {decision.location!r}, and this is {request.location!r}: a copy has "
        f"the same query id, and its rows would vanish. Give the copy a new {_new_name(request)}; if the checkpoint "
        f"was moved, set checkpointMoved={decision.location}"
    )
    return Refusal(ErrorCode.CHECKPOINT_COPIED, text)


def _missing(request: BeginJointRequest | CommitJointRequest, last: int | None) -> Refusal | None:
    """Nothing was decided where a stream has decided something, by its own account."""
    following = 0 if last is None else last + 1
    if request.kind != JointKind.STREAM or request.sequence in (following, request.first_batch):
        return None
    known = "no decision" if last is None else f"sequence {last} as the last one"
    text = (
        f"{request.group_id} has {known}, and this is sequence {request.sequence}. If what lies between was written "
        f"elsewhere or is not wanted, set firstBatch={request.sequence}"
    )
    return Refusal(ErrorCode.DECISION_MISSING, text)
