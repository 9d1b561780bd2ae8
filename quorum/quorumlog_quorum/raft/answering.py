"""Which rule answers a message of another node: a request, the response to an own request, or its failure."""

from __future__ import annotations

from typing import assert_never

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    TransferLeadershipRequest,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)
from quorumlog_quorum.raft.core import Core
from quorumlog_quorum.raft.describe import describe
from quorumlog_quorum.raft.election import (
    on_vote_failed,
    on_vote_response,
)
from quorumlog_quorum.raft.events import (
    ReceivedResponse,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
)
from quorumlog_quorum.raft.following import (
    on_fetch_failed,
    on_fetch_response,
)
from quorumlog_quorum.raft.handing_over import on_transfer_request
from quorumlog_quorum.raft.leading import (
    on_fetch_request,
)
from quorumlog_quorum.raft.outbox import InFlightRequest
from quorumlog_quorum.raft.reconfiguring import on_voter_request
from quorumlog_quorum.raft.resigning import (
    on_begin_request,
    on_end_answered,
    on_end_request,
)
from quorumlog_quorum.raft.snapshot_serving import on_fetch_snapshot_request
from quorumlog_quorum.raft.voter_requests import on_voter_response
from quorumlog_quorum.raft.voting import on_vote_request


def on_request(core: Core, event: RequestReceived, now_ms: int) -> None:
    token = event.token
    match event.message:
        case VoteRequest() as vote:
            on_vote_request(core, token, vote, now_ms)
        case BeginQuorumEpochRequest() as begin:
            on_begin_request(core, token, begin, now_ms)
        case EndQuorumEpochRequest() as end:
            on_end_request(core, token, end, now_ms)
        case QuorumFetchRequest() as fetch:
            on_fetch_request(core, token, fetch, now_ms)
        case AddRaftVoterRequest() | RemoveRaftVoterRequest() | UpdateRaftVoterRequest():
            on_voter_request(core, token, event.message, now_ms)
        case FetchSnapshotRequest() as fetch_snapshot:
            on_fetch_snapshot_request(core, token, fetch_snapshot, now_ms)
        case DescribeQuorumRequest():
            core.reply(token, describe(core, now_ms))
        case TransferLeadershipRequest() as transfer:
            on_transfer_request(core, token, transfer, now_ms)
        case _:
            assert_never(event.message)


def on_response(core: Core, event: ResponseReceived, now_ms: int) -> None:
    response = event.message
    request = core.outbox.finish(event.correlation)
    if request is None:
        return
    _learn_addresses(core, request, response)
    # A successor that answers EndQuorumEpoch in its own new epoch asks for a vote next: then both are one write.
    if not isinstance(response, EndQuorumEpochResponse) or response.leader_id != NO_NODE:
        core.learn(response.leader_epoch, None if response.leader_id == NO_NODE else response.leader_id, now_ms)
    match response:
        case VoteResponse():
            on_vote_response(core, request, response, now_ms)
        case QuorumFetchResponse() | FetchSnapshotResponse():
            on_fetch_response(core, event.correlation, request, response, event.spans, now_ms)
        case EndQuorumEpochResponse():
            on_end_answered(core, request, acknowledged=True, now_ms=now_ms)
        case BeginQuorumEpochResponse():
            pass  # the voter's fetches will show that it follows
        case AddRaftVoterResponse() | RemoveRaftVoterResponse() | UpdateRaftVoterResponse():
            on_voter_response(core, event.correlation, request, response, now_ms)
        case _:
            assert_never(response)


def _learn_addresses(core: Core, request: InFlightRequest, response: ReceivedResponse) -> None:
    """Before the leader itself is learnt: a leader is followed only where it can be reached."""
    is_current = response.leader_epoch >= core.epoch
    if is_current and isinstance(response, VoteResponse | QuorumFetchResponse | FetchSnapshotResponse):
        core.addresses.hint(response.leader_id, response.node_endpoints, core.history)
    is_bootstrap_leader = request.to < NO_NODE and response.error_code == ErrorCode.NONE
    if is_current and is_bootstrap_leader:
        core.addresses.bootstrap_answered(response.leader_id, request.to)
    if is_bootstrap_leader or request.to == response.leader_id:
        core.clear_departed()


def on_failure(core: Core, event: RequestFailed, now_ms: int) -> None:
    request = core.outbox.finish(event.correlation)
    if request is None:
        return
    match request.message:
        case VoteRequest():
            on_vote_failed(core, request, now_ms)
        case QuorumFetchRequest() | FetchSnapshotRequest():
            on_fetch_failed(core, event.correlation, request, now_ms)
        case EndQuorumEpochRequest():
            on_end_answered(core, request, acknowledged=False, now_ms=now_ms)
        case AddRaftVoterRequest() | RemoveRaftVoterRequest() | UpdateRaftVoterRequest():
            on_voter_response(core, event.correlation, request, None, now_ms)
        case BeginQuorumEpochRequest():
            pass  # it is sent again to the voters that do not fetch
