"""Calls that come late: of runs that are over, of drivers that are dead, and of others that have no business there."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any, NamedTuple

from jepsen.checkers.findings import Finding
from jepsen.checkers.joint.events import Abort, Attempt, Commit, Row, value_of
from jepsen.joint.asking import Asking, abort_request
from jepsen.joint.recorder import JOINT, PARTITIONS, Group, JointRecorder
from jepsen.joint.task import LATE_REFUSED, LATE_ROWS, Child, Task
from jepsen.transactions.calls import TRANSACTION, Calls, Unknown
from jepsen.transactions.producer import TV2, Lost, Producer, Refused
from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import BeginJointRequest, CommitJointRequest
from quorumlog.messages.produce import InitProducerIdRequest
from quorumlog.messages.transactions import EndTxnRequest
from quorumlog.records.coordinator.transactions import NO_PRODUCER_ID
from quorumlog.rpc.transport import RpcError

KEPT_MAX = 12
SHARE = 0.25  # of the batches behind which one comes
LATE_ROWS_NUMBER = 100  # their numbers begin here
OTHERS_REFUSED = "joint children that others asked for"


class _Kept(NamedTuple):
    group: Group
    of: Attempt | Commit | Abort
    request: Any


class Late:
    """Of one driver, over its runs."""

    def __init__(self, recorder: JointRecorder, rng: random.Random) -> None:
        self._recorder, self._rng = recorder, rng
        self._kept: list[_Kept] = []

    def begun(self, group: Group, task: Task) -> None:
        self._keep(_Kept(group, task.attempt, task.begin))

    def asked(self, group: Group, commit: Commit, request: CommitJointRequest) -> None:
        self._keep(_Kept(group, commit, request))

    def aborted(self, group: Group, abort: Abort) -> None:
        self._keep(_Kept(group, abort, abort_request(abort)))

    def _keep(self, one: _Kept) -> None:
        self._kept.append(one)
        del self._kept[:-KEPT_MAX]

    async def repeat_some(self, asking: Asking) -> None:
        """By chance, one of the calls that were sent before; or a call that is not the group's."""
        if not self._kept or self._rng.random() >= SHARE:
            return
        one = self._rng.choice(self._kept)
        if one.group is not asking.group:
            return
        try:
            if isinstance(one.of, Attempt):
                await asking.begin(one.of, one.request, attempts=2)
                await self._as_a_copy(asking, one.request)
            elif isinstance(one.of, Commit):
                await asking.commit(one.of, one.request, attempts=2)
            else:
                await asking.abort(one.of, attempts=2)
        except Unknown:
            return
        self._recorder.counts["joint late calls"] += 1

    async def _as_a_copy(self, asking: Asking, request: BeginJointRequest) -> None:
        """The same call from a copy of the checkpoint, for the batch that was decided last. Raises Unknown."""
        group = asking.group
        if group.committed < 0 or not group.location:
            return
        copy = Attempt(group.name, group.committed, request.run, f"{group.location}-copy", self._recorder.draw())
        self._recorder.history.attempts.append(copy)
        changed = replace(
            request, location=copy.location, sequence=copy.sequence, token=copy.token.encode(),
            checkpoint_moved="file:/another",
        )  # fmt: skip
        await asking.begin(copy, changed, attempts=2)


async def go_on_sending(
    attempt: Attempt, child: Child, recorder: JointRecorder, calls: Calls, rng: random.Random
) -> None:
    """As a task whose driver has died, and which does not know it. Then somebody asks for its id."""
    old = child.producer
    producer = Producer(
        calls, recorder.producers, old.transactional_id, TV2, old.timeout_ms, old.producer_id, old.epoch,
        _sequences=dict(old._sequences),
    )  # fmt: skip
    try:
        for number in range(LATE_ROWS_NUMBER, LATE_ROWS_NUMBER + LATE_ROWS):
            await asyncio.sleep(rng.uniform(0.05, 1.5))
            value = value_of(attempt.group, attempt.sequence, attempt.token, number)
            row = Row(rng.randrange(PARTITIONS), value)
            attempt.rows.append(row)
            row.offset = await producer.send(JOINT, row.partition, value.encode())
            row.acked = True
            recorder.counts["joint late rows taken"] += 1
    except (Refused, Lost):
        recorder.counts[LATE_REFUSED] += 1
    try:
        await _ask_for(producer, calls, recorder, rng)
    except RpcError:
        pass
    finally:
        await calls.close()


async def _ask_for(producer: Producer, calls: Calls, recorder: JointRecorder, rng: random.Random) -> None:
    """InitProducerId or EndTxn of a child's id: nobody but its group's calls ends it. An id that has expired is free
    for everybody, with another producer id. Raises RpcError."""
    request: InitProducerIdRequest | EndTxnRequest
    if rng.random() < 0.5:
        request = InitProducerIdRequest(transactional_id=producer.transactional_id, transaction_timeout_ms=6_000)
    else:
        request = producer.end_request(committed=True)
    response = await calls.to_coordinator(TRANSACTION, producer.transactional_id, request)
    took = response.error_code == ErrorCode.NONE and response.producer_id in (NO_PRODUCER_ID, producer.producer_id)
    if took:
        text = f"{type(request).__name__} of {producer.transactional_id} in epoch {producer.epoch} was carried out"
        recorder.findings.append(Finding("joint-ended-by-others", text))
    recorder.counts[OTHERS_REFUSED] += response.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
