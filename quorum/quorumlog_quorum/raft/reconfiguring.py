"""The leader's side of AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter and the upgrade of kraft.version (KIP-853).

- One change at a time: the next one is refused until the last one is committed. So at most one set is uncommitted, and
  the majorities of any two sets that nodes may hold overlap.
- The leader must have committed a record of its own epoch first. Else it might not know of a set that an earlier leader
  has appended, and two sets without a common majority could both count.
- A new voter first proves who it is (the right node with the right directory), then copies the log as an observer. It
  is added once it has had every record of the leader; else the quorum would wait for it.
- A leader that removes itself leads on without counting itself until its removal is committed. Then it resigns.
- The directory id is the memory of a voter. The same node on another directory has forgotten its votes and its
  acknowledgements, so it is added only after its former self was removed.
"""

from __future__ import annotations

from dataclasses import replace

from quorumlog.errors import ErrorCode
from quorumlog.ids import ZERO_UUID, format_uuid
from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from quorumlog.messages.quorum import (
    VoterChange as DescribedChange,
)
from quorumlog.records.control import KRaftVersion, Voters
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.effects import ProbeCandidate, VoterRequest
from quorumlog_quorum.raft.events import CandidateProbed, FoundCandidate, UpgradeRequested
from quorumlog_quorum.raft.membership import MAX_LEVEL, MIN_LEVEL
from quorumlog_quorum.raft.resigning import resign
from quorumlog_quorum.raft.roles import Leader
from quorumlog_quorum.raft.voter_change import ChangeKind, ChangePhase, VoterChange, answer_to, kind_of
from quorumlog_quorum.raft.voters import (
    DYNAMIC_LEVEL,
    Voter,
    VoterKey,
    VoterSet,
    have_overlapping_majorities,
    record_of,
    with_voter,
    without_voter,
)


class Refused(Exception):
    """Why a change is not made. Nothing was changed."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


def on_voter_request(core: Core, token: int, request: VoterRequest, now_ms: int) -> None:
    kind = kind_of(request)
    try:
        match request:
            case AddRaftVoterRequest():
                _begin_add(core, token, request, now_ms)
            case RemoveRaftVoterRequest():
                _remove(core, token, request, now_ms)
            case UpdateRaftVoterRequest():
                _update(core, token, request, now_ms)
    except Refused as refused:
        core.add_effect(answer_to(kind, token, refused.code, refused.text, core.leader_hint, core.epoch))


def on_upgrade_requested(core: Core, event: UpgradeRequested, now_ms: int) -> None:
    """Level 0 -> 1: write down the voters as they have told about themselves, all of them on their directories."""

    def answer(code: ErrorCode, text: str) -> None:
        core.add_effect(answer_to(ChangeKind.UPGRADE, event.token, code, text, core.leader_hint, core.epoch))

    try:
        leader = _settled_leader(core)
        is_done = core.history.level >= DYNAMIC_LEVEL
        voters = core.voters if is_done else VoterSet(_told(core, leader, voter) for voter in core.voters.voters)
    except Refused as refused:
        answer(refused.code, refused.text)
        return
    if is_done or event.validate_only:
        answer(ErrorCode.NONE, "")
        return
    change = _new_change(core, ChangeKind.UPGRADE, core.key, event.token, now_ms)
    leader.begin_change(change)
    _append(core, change, KRaftVersion(DYNAMIC_LEVEL), record_of(voters))


def on_candidate_probed(core: Core, event: CandidateProbed, now_ms: int) -> None:
    change = core.role.change if isinstance(core.role, Leader) else None
    if change is None or change.number != event.number or change.phase is not ChangePhase.PROBE:
        return
    assert change.voter is not None
    try:
        change.found(_checked(change.voter, event.found))
    except Refused as refused:
        _end(core, change, refused.code, refused.text)


def advance_change(core: Core, now_ms: int) -> None:
    """After each event: the change that is under way may be able to go on, or its time is over."""
    leader = core.role
    if not isinstance(leader, Leader):
        return
    change = leader.change
    if change is not None:
        _go_on(core, leader, change, now_ms)
    last = core.history.last_offset
    if (
        leader.change is not None
        or leader.hand_over is not None
        or not leader.claimed
        or last is None
        or last >= core.high_watermark
    ):
        return
    if not leader.replicas.leader_counts:
        resign(core, now_ms, leader.replicas.by_progress())
    elif core.history.level >= DYNAMIC_LEVEL and core.membership.endpoints:
        _update_itself(core, leader, now_ms)


def describe_change(core: Core) -> DescribedChange | None:
    leader = core.role
    if not isinstance(leader, Leader) or leader.change is None:
        return None
    change = leader.change
    return DescribedChange(
        kind=change.kind.value,
        voter_id=change.key.node_id,
        voter_directory_id=change.key.directory_id,
        phase=change.phase.value,
        log_end_offset=leader.replicas.end_of(change.key),
        leader_end_offset=core.log.written_end,
    )


# --- the requests ---


def _begin_add(core: Core, token: int, request: AddRaftVoterRequest, now_ms: int) -> None:
    """The checks come in the order of KIP-853."""
    leader = _settled_leader(core)
    _check_level(core)
    key = _key(request.voter_id, request.voter_directory_id)
    known = core.voters.by_id.get(key.node_id)
    if known is not None:
        raise Refused(ErrorCode.DUPLICATE_VOTER, _duplicate_text(known, key))
    endpoints = _endpoints(core, request.listeners)
    timeout_ms = max(0, min(request.timeout_ms, core.config.voter_change_max_ms))
    voter = Voter(
        node_id=key.node_id, directory_id=key.directory_id, endpoint=endpoints[0], more_endpoints=endpoints[1:]
    )
    change = VoterChange(
        number=core.outbox.next_number(),
        kind=ChangeKind.ADD,
        key=key,
        deadline_ms=now_ms + timeout_ms,
        token=token,
        ack_when_committed=request.ack_when_committed,
        voter=voter,
    )
    leader.begin_change(change)
    core.add_effect(ProbeCandidate(change.number, endpoints[0]))


def _remove(core: Core, token: int, request: RemoveRaftVoterRequest, now_ms: int) -> None:
    leader = _settled_leader(core)
    _check_level(core)
    key = _key(request.voter_id, request.voter_directory_id)
    if not core.voters.names(key):
        raise Refused(ErrorCode.VOTER_NOT_FOUND, f"{_name(key)} is not a voter; the voters are {_names(core.voters)}")
    if len(core.voters) == 1:
        text = f"{_name(key)} is the last voter; add another one first"
        raise Refused(ErrorCode.INVALID_REQUEST, text)
    change = _new_change(core, ChangeKind.REMOVE, key, token, now_ms)
    leader.begin_change(change)
    _append_set(core, change, without_voter(core.voters, key))


def _update(core: Core, token: int, request: UpdateRaftVoterRequest, now_ms: int) -> None:
    """The answer does not wait for the commit: the voter sees it in the log."""
    if isinstance(core.role, Leader) and request.current_leader_epoch != core.epoch:
        raise Refused(_epoch_code(core, request), f"the leader is in epoch {core.epoch}")
    leader = _leader(core) if core.history.level < DYNAMIC_LEVEL else _settled_leader(core)
    key = _key(request.voter_id, request.voter_directory_id)
    if not core.voters.names(key):
        raise Refused(ErrorCode.VOTER_NOT_FOUND, f"{_name(key)} is not a voter; the voters are {_names(core.voters)}")
    endpoints = _endpoints(core, request.listeners)
    if not request.min_kraft_version <= core.history.level <= request.max_kraft_version:
        text = f"{_name(key)} supports kraft.version {request.min_kraft_version}-{request.max_kraft_version}"
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"{text}, the cluster is at {core.history.level}; upgrade its software"
        )
    voter = Voter(
        node_id=key.node_id,
        directory_id=key.directory_id,
        endpoint=endpoints[0],
        more_endpoints=endpoints[1:],
        min_version=request.min_kraft_version,
        max_version=request.max_kraft_version,
    )
    if core.history.level < DYNAMIC_LEVEL:
        leader.note_update(voter)
    elif core.voters.by_id[key.node_id] != voter:
        change = _new_change(core, ChangeKind.UPDATE, key, None, now_ms)
        leader.begin_change(change)
        _append_set(core, change, with_voter(core.voters, voter))
    core.add_effect(answer_to(ChangeKind.UPDATE, token, ErrorCode.NONE, "", core.leader_hint, core.epoch))


def _update_itself(core: Core, leader: Leader, now_ms: int) -> None:
    """The leader listens elsewhere, or its software was upgraded, since its voter set was written."""
    own = core.membership.as_voter(core.key)
    if core.voters.by_id[core.node_id] != own:
        change = _new_change(core, ChangeKind.UPDATE, core.key, None, now_ms)
        leader.begin_change(change)
        _append_set(core, change, with_voter(core.voters, own))


# --- checks ---


def _leader(core: Core) -> Leader:
    """This node, if it leads. Raises Refused."""
    if not isinstance(core.role, Leader):
        raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"node {core.node_id} does not lead the quorum; ask the leader")
    return core.role


def _settled_leader(core: Core) -> Leader:
    """This node, if it leads and no change is under way. Raises Refused."""
    leader = _leader(core)
    if not leader.claimed:
        text = "the leader has not committed a record of its own epoch yet; try again in a moment"
        raise Refused(ErrorCode.REQUEST_TIMED_OUT, text)
    if leader.hand_over is not None:
        raise Refused(ErrorCode.REQUEST_TIMED_OUT, "the leadership is being handed over; try again in a moment")
    if leader.change is not None:
        text = f"a change of the voters is under way ({leader.change.kind.value} {_name(leader.change.key)}, "
        raise Refused(ErrorCode.REQUEST_TIMED_OUT, f"{text}{leader.change.phase.value}); try again when it is done")
    last = core.history.last_offset
    if last is not None and last >= core.high_watermark:
        raise Refused(ErrorCode.REQUEST_TIMED_OUT, "the last voter set is not committed yet; try again in a moment")
    return leader


def _check_level(core: Core) -> None:
    if core.history.level < DYNAMIC_LEVEL:
        text = (
            f"the cluster is at kraft.version {core.history.level}: its voters are in the configuration of its nodes "
            f"and cannot be changed; raise it first: quorumlog feature upgrade kraft.version={DYNAMIC_LEVEL}"
        )
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, text)


def _key(node_id: int, directory_id: bytes) -> VoterKey:
    if node_id < 0 or len(directory_id) != len(ZERO_UUID) or directory_id == ZERO_UUID:
        raise Refused(ErrorCode.INVALID_REQUEST, "a voter is named by its node id and its directory id, not zero")
    return VoterKey(node_id, directory_id)


def _endpoints(core: Core, listeners: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    """The one of the internal listener comes first."""
    named = sorted(listeners, key=lambda endpoint: endpoint.name != core.listener)
    if not named or named[0].name != core.listener or not named[0].host or not 0 < named[0].port < 1 << 16:
        found = ", ".join(endpoint.name for endpoint in listeners) or "none"
        text = f"no endpoint of the listener {core.listener}, which the quorum uses; found: {found}"
        raise Refused(ErrorCode.INVALID_REQUEST, text)
    return tuple(named)


def _checked(voter: Voter, found: FoundCandidate | None) -> Voter:
    """What the candidate answered to the probe. Raises Refused."""
    where = f"{voter.endpoint.host}:{voter.endpoint.port}"
    if found is None:
        text = f"{_name(voter.key)} does not answer at {where}; start it there, then try again"
        raise Refused(ErrorCode.REQUEST_TIMED_OUT, text)
    if found.key != voter.key:
        raise Refused(ErrorCode.INVALID_REQUEST, f"at {where} is {_name(found.key)}, not {_name(voter.key)}")
    if not found.is_controller:
        text = f"{_name(voter.key)} has not the role controller; set process.roles and restart it"
        raise Refused(ErrorCode.INVALID_REQUEST, text)
    if not found.min_version <= DYNAMIC_LEVEL <= found.max_version:
        text = f"{_name(voter.key)} supports kraft.version {found.min_version}-{found.max_version}, not {DYNAMIC_LEVEL}"
        raise Refused(ErrorCode.INVALID_REQUEST, f"{text}; upgrade its software")
    return replace(voter, min_version=found.min_version, max_version=found.max_version)


def _told(core: Core, leader: Leader, voter: Voter) -> Voter:
    """A voter of the static set as it has told about itself. Raises Refused."""
    if voter.node_id == core.node_id:
        own = core.membership.as_voter(core.key)
        return replace(own, endpoint=voter.endpoint, min_version=MIN_LEVEL, max_version=MAX_LEVEL)
    found = leader.updates.get(voter.node_id)
    if found is None:
        text = f"voter {voter.node_id} has not told this leader that it supports kraft.version {DYNAMIC_LEVEL}"
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, f"{text}; start it, or upgrade its software")
    if found.max_version < DYNAMIC_LEVEL:
        text = f"voter {voter.node_id} supports kraft.version {found.min_version}-{found.max_version}"
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, f"{text}; upgrade its software")
    return found


def _epoch_code(core: Core, request: UpdateRaftVoterRequest) -> ErrorCode:
    if request.current_leader_epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


# --- the way of a change ---


def _new_change(core: Core, kind: ChangeKind, key: VoterKey, token: int | None, now_ms: int) -> VoterChange:
    """Of a change that needs nothing but its commit."""
    return VoterChange(
        number=core.outbox.next_number(),
        kind=kind,
        key=key,
        deadline_ms=now_ms + core.config.voter_change_timeout_ms,
        token=token,
    )


def _go_on(core: Core, leader: Leader, change: VoterChange, now_ms: int) -> None:
    may_append = leader.hand_over is None
    if (
        may_append
        and change.phase is ChangePhase.CATCH_UP
        and leader.replicas.is_caught_up(change.key, core.config.fetch_timeout_ms, now_ms)
    ):
        assert change.voter is not None
        _append_set(core, change, with_voter(core.voters, change.voter))
        if not change.ack_when_committed:
            _answer(core, change, ErrorCode.NONE, "")
    elif change.phase is ChangePhase.COMMIT and change.end_offset <= core.high_watermark:
        _end(core, change, ErrorCode.NONE, "")
    elif change.deadline_ms <= now_ms and change.phase is not ChangePhase.COMMIT:
        _end(core, change, ErrorCode.REQUEST_TIMED_OUT, _too_slow(core, leader, change))
    elif change.deadline_ms <= now_ms and change.token is not None:
        text = "the change is in the log and in force, but no majority has it yet; it will be committed or reverted"
        _answer(core, change, ErrorCode.REQUEST_TIMED_OUT, f"{text}: look at the voters")


def _append_set(core: Core, change: VoterChange, voters: VoterSet) -> None:
    assert have_overlapping_majorities(core.voters, voters), f"{core.voters} -> {voters}"
    _append(core, change, record_of(voters))


def _append(core: Core, change: VoterChange, *records: KRaftVersion | Voters) -> None:
    core.append_members(records)
    change.appended(core.log.accepted_end)


def _answer(core: Core, change: VoterChange, code: ErrorCode, text: str) -> None:
    if change.token is not None:
        core.add_effect(answer_to(change.kind, change.token, code, text, core.leader_hint, core.epoch))
        change.answered()


def _end(core: Core, change: VoterChange, code: ErrorCode, text: str) -> None:
    _answer(core, change, code, text)
    assert isinstance(core.role, Leader)
    core.role.end_change()


# --- words ---


def _too_slow(core: Core, leader: Leader, change: VoterChange) -> str:
    if change.phase is ChangePhase.PROBE:
        return f"{_name(change.key)} has not answered in time; is it running?"
    end = leader.replicas.end_of(change.key)
    if end < 0:
        text = f"{_name(change.key)} does not fetch from the leader"
        return f"{text}; start it with controller.quorum.bootstrap.servers, then try again"
    return f"{_name(change.key)} has {end} of {core.log.written_end} records; it goes on copying: try again"


def _duplicate_text(known: Voter, key: VoterKey) -> str:
    if known.key == key:
        return f"{_name(key)} is a voter already"
    return (
        f"node {key.node_id} is a voter on another directory ({format_uuid(known.key.directory_id)}); a new directory "
        f"does not know its earlier votes: remove {_name(known.key)} first"
    )


def _name(key: VoterKey) -> str:
    return f"node {key.node_id} with directory {format_uuid(key.directory_id)}"


def _names(voters: VoterSet) -> str:
    return ", ".join(_name(voter.key) for voter in voters.voters)
