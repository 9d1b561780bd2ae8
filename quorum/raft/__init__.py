"""The Raft core of the metadata quorum, without I/O. These names are its whole interface to the driver.

One `Raft` takes events and the time, and gives back effects. Inside: raft (which rule answers an event), core (the
state, and every change of it), roles (which role may follow which), voting, election, leading, following, resigning
(the rules), log_state, replicas, voters, quorum_state (what the core knows of its log, followers, peers and file).
"""

from __future__ import annotations

from quorum.raft.config import RaftConfig
from quorum.raft.effects import (
    AppendFetched,
    AppendLeaderChange,
    AppendValues,
    HighWatermark,
    LeaderChanged,
    LeadershipClaimed,
    LeadershipLost,
    PersistQuorumState,
    ProbeLeader,
    RaftEffect,
    ReadForFetch,
    RecordsRegained,
    Reply,
    Send,
    SentRequest,
    SentResponse,
    ShutdownFinished,
    TruncateTo,
)
from quorum.raft.events import (
    AppendRequested,
    LogSynced,
    LogTruncated,
    LogWritten,
    NotLeader,
    PeerProvenDead,
    RaftEvent,
    ReceivedRequest,
    ReceivedResponse,
    RecordsRead,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    ShutdownRequested,
    Started,
    TimerFired,
)
from quorum.raft.log_state import EpochSpan, LogState
from quorum.raft.quorum_state import QuorumState
from quorum.raft.raft import Raft
from quorum.raft.roles import RaftRole
from quorum.raft.voters import Voter, VoterKey, VoterSet

__all__ = [
    "AppendFetched",
    "AppendLeaderChange",
    "AppendRequested",
    "AppendValues",
    "LogWritten",
    "EpochSpan",
    "HighWatermark",
    "LeaderChanged",
    "LeadershipClaimed",
    "LeadershipLost",
    "LogState",
    "LogTruncated",
    "NotLeader",
    "PeerProvenDead",
    "PersistQuorumState",
    "ProbeLeader",
    "QuorumState",
    "Raft",
    "RaftConfig",
    "RaftEffect",
    "RaftEvent",
    "RaftRole",
    "ReadForFetch",
    "ReceivedRequest",
    "ReceivedResponse",
    "RecordsRead",
    "RecordsRegained",
    "Reply",
    "RequestFailed",
    "RequestReceived",
    "ResponseReceived",
    "Send",
    "SentRequest",
    "SentResponse",
    "ShutdownFinished",
    "ShutdownRequested",
    "Started",
    "LogSynced",
    "TimerFired",
    "TruncateTo",
    "Voter",
    "VoterKey",
    "VoterSet",
]
