"""The calls of one driver or task for one group: each is sent until it is answered, and its answers are noted."""

from __future__ import annotations

import asyncio
from typing import Any

from jepsen.checkers.joint.events import OPEN_NS, Abort, AbortAnswer, Attempt, Begun, Commit, Missing
from jepsen.joint.recorder import Group, JointRecorder
from jepsen.transactions.calls import ASIDE, TRANSACTION, WAIT_S, Calls, Unknown
from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import (
    AbortJointRequest,
    BeginJointRequest,
    BeginJointResponse,
    CommitJointRequest,
    CommitJointResponse,
    JointChildRef,
    JointFact,
)
from quorumlog.rpc.transport import RpcError

ATTEMPTS = 40
BUSY = ASIDE | {ErrorCode.CONCURRENT_TRANSACTIONS}
REFUSED = {  # what is counted
    ErrorCode.SUPERSEDED: "joint runs refused",
    ErrorCode.CHECKPOINT_ROLLED_BACK: "joint batches below the last",
    ErrorCode.CHECKPOINT_COPIED: "joint copies refused",
    ErrorCode.CHILD_NOT_OPEN: "joint children refused",
    ErrorCode.DECISION_MISSING: "joint gaps refused",
    ErrorCode.REPLAY_DIFFERS: "joint replays refused",
    ErrorCode.UNSUPPORTED_VERSION: "joint calls below the level",
}
FAILOVERS = "joint calls answered after a failover"


def begin_request(group: Group, attempt: Attempt, timeout_ms: int) -> BeginJointRequest:
    return BeginJointRequest(
        group_id=group.name,
        kind=group.kind,
        location=attempt.location,
        run=attempt.run,
        sequence=attempt.sequence,
        token=attempt.token.encode(),
        timeout_ms=timeout_ms,
    )


def commit_request(
    group: Group, commit: Commit, children: tuple[JointChildRef, ...], wait_ms: int, **overrides: Any
) -> CommitJointRequest:
    return CommitJointRequest(
        group_id=group.name,
        kind=group.kind,
        location=commit.location,
        run=commit.run,
        sequence=commit.sequence,
        children=children,
        facts=(JointFact(name="rows", value=commit.rows),),
        commit_wait_ms=wait_ms,
        **overrides,
    )


def abort_request(abort: Abort) -> AbortJointRequest:
    return AbortJointRequest(
        group_id=abort.group,
        location=abort.location,
        run=abort.run,
        sequence=abort.sequence,
        token=abort.token.encode(),
    )


class Asking:
    def __init__(self, group: Group, recorder: JointRecorder, calls: Calls) -> None:
        self.group, self.recorder, self.calls = group, recorder, calls

    async def begin(self, attempt: Attempt, request: BeginJointRequest, attempts: int = ATTEMPTS) -> BeginJointResponse:
        """Raises Unknown."""
        invoked_ns = self.recorder.now_ns()
        response: BeginJointResponse = await self._repeat(request, attempts)
        if response.error_code == ErrorCode.NONE:
            child = (response.transactional_id, response.producer_id, response.producer_epoch)
            begun = Begun(
                attempt.group, attempt.sequence, attempt.location, attempt.token,
                None if response.decided else child, invoked_ns,
            )  # fmt: skip
            self.recorder.history.begun.append(begun)
            self.recorder.counts["joint tasks told decided" if response.decided else "joint children begun"] += 1
        self._note_missing(response.error_code, attempt.sequence, invoked_ns)
        return response

    async def commit(
        self, commit: Commit, request: CommitJointRequest, attempts: int = ATTEMPTS
    ) -> CommitJointResponse:
        """Raises Unknown."""
        invoked_ns = self.recorder.now_ns()
        response: CommitJointResponse = await self._repeat(request, attempts)
        if response.error_code == ErrorCode.NONE:
            commit.acked_ns = min(commit.acked_ns, self.recorder.now_ns())
            self.group.committed = max(self.group.committed, commit.sequence)
            self.recorder.counts["joint commits complete" if response.complete else "joint commits decided only"] += 1
        self._note_missing(response.error_code, commit.sequence, invoked_ns)
        return response

    async def abort(self, abort: Abort, attempts: int = ATTEMPTS) -> None:
        """Raises Unknown."""
        self.recorder.aborts[abort] = None
        invoked_ns = self.recorder.now_ns()
        response = await self._repeat(abort_request(abort), attempts)
        if response.error_code == ErrorCode.NONE:
            answer = AbortAnswer(abort, response.decided, invoked_ns, self.recorder.now_ns())
            self.recorder.history.aborts.append(answer)
            what = "joint aborts told decided" if response.decided else "joint aborts"
            self.recorder.counts[what] += response.decided or response.aborted > 0

    async def _repeat(self, request: Any, attempts: int) -> Any:
        lost = False
        for _ in range(attempts):
            try:
                response = await self.calls.to_coordinator(TRANSACTION, self.group.name, request)
            except RpcError:
                lost = True
                await asyncio.sleep(WAIT_S)
                continue
            code = ErrorCode(response.error_code)
            if code not in BUSY:
                self.recorder.counts[FAILOVERS] += lost
                if code in REFUSED:
                    self.recorder.counts[REFUSED[code]] += 1
                return response
            if code in ASIDE:
                lost = True
                self.calls.forget_coordinator(TRANSACTION, self.group.name)
            await asyncio.sleep(WAIT_S)
        raise Unknown(f"{type(request).__name__} for {self.group.name}: {attempts} attempts without an answer")

    def _note_missing(self, code: int, sequence: int, invoked_ns: int) -> None:
        if code == ErrorCode.DECISION_MISSING:
            self.recorder.history.missing.append(Missing(self.group.name, sequence, invoked_ns))


def new_commit(group: Group, sequence: int, run: str, tokens: frozenset[str], rows: int, location: str) -> Commit:
    return Commit(group.name, sequence, run, location, tokens, rows, OPEN_NS)
