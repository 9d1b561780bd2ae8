"""Exactly once into a quorumlog cluster: the coordinator decides a batch in one record (decision 112)."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from quorumlog.client.blocking import Producer
from quorumlog.client.blocking_joint import Joint
from quorumlog.client.errors import (
    ChildNotOpen,
    JointRefused,
    NoJointTransactions,
    NotOurs,
    QuorumlogError,
    ReplayDiffers,
    Superseded,
    Unavailable,
)
from quorumlog.client.options import CommonOptions, ProducerOptions, parse_options
from quorumlog.client.transactions.driver import BegunTransaction
from quorumlog.messages.joint import (
    AbortJointRequest,
    AbortJointResponse,
    BeginJointRequest,
    BeginJointResponse,
    CommitJointRequest,
    CommitJointResponse,
    JointChildRef,
    JointFact,
    ListedJointGroup,
    OpenJointChild,
)
from quorumlog.spark.read.options import DEFAULT_KEEP_CONNECTIONS_MS
from quorumlog.spark.session.kept_connections import Lease
from quorumlog.spark.write.options import OnceOptions, WriteOptions
from quorumlog.spark.write.sending.delivery import Attempt, BatchOf
from quorumlog.spark.write.sending.sender import ClusterSender

JOINT_TRANSACTIONS = 2  # level of transaction.version that they need
COMMIT_WAIT_MS = 10_000  # for the markers, so that readers of committed records see all rows when the batch returns
ABORT_TIMEOUT_MS = 5_000  # of a task that fails: what it leaves open ends with the batch
LATE_LOOKS, LATE_LOOK_S = 6, 1.0  # 5 s: Spark looks after killed tasks every 2 s, spark.python.task.killTimeout is 2 s
TOPICS_TOLD = 13  # of a decision's facts, of which there are 16; all others share two, and the query has one
NAME_BYTES = 64  # of a fact
OTHERS, OTHERS_DIGEST, QUERY_FACT = "(others)", "(digest)", "(query)"  # no topic has such a name


class JointCalls(Protocol):
    """`blocking_joint.Joint`, or another one in tests."""

    def begin(self, request: BeginJointRequest, timeout_ms: int | None = None) -> BeginJointResponse: ...
    def commit(self, request: CommitJointRequest, timeout_ms: int | None = None) -> CommitJointResponse: ...
    def abort(self, request: AbortJointRequest, timeout_ms: int | None = None) -> AbortJointResponse: ...
    def list_groups(self) -> list[ListedJointGroup]: ...
    def close(self) -> None: ...


def connect(client: Mapping[str, Any]) -> Joint:
    """client: options of a producer. Over connections that this process keeps for the next batch or task."""
    parsed = parse_options(ProducerOptions, client, {})
    common = {name: getattr(parsed, name) for name in CommonOptions.__dataclass_fields__}
    return Joint(common, connect=Lease(DEFAULT_KEEP_CONNECTIONS_MS).of_kind)


class JointSender(ClusterSender):
    """`AttemptSender`. Leaders add the partitions of a transaction that is as new as joint ones are."""

    def __init__(self, client: Mapping[str, Any], attempt: Attempt) -> None:
        self.attempt = attempt
        ids = (attempt.transactional_id, attempt.producer_id, attempt.producer_epoch)
        begun = BegunTransaction(*ids, JOINT_TRANSACTIONS)
        super().__init__(client, Producer(dict(client), begun=begun, connect=Lease(0).of_kind))


class JointDelivery:
    """`Delivery`. It connects when it is made. pause: for so many seconds."""

    def __init__(
        self,
        options: WriteOptions,
        once: OnceOptions,
        make: Callable[[Mapping[str, Any]], JointCalls] = connect,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client, self._once, self._pause = options.client, once, pause
        self._joint = make(options.client)

    def begin(self, batch: BatchOf, token: bytes) -> Attempt | None:
        """See `Delivery`. Raises JointRefused, NoJointTransactions, Unavailable."""
        request = BeginJointRequest(
            group_id=batch.group,
            kind=batch.kind,
            location=batch.location,
            run=batch.run,
            sequence=batch.sequence,
            token=token,
            timeout_ms=self._once.transaction_timeout_ms,
            first_batch=self._once.first_batch,
            checkpoint_moved=self._once.checkpoint_moved,
        )
        try:
            found: BeginJointResponse = self._explained(lambda: self._joint.begin(request))
        except Unavailable:
            self._abort_token(batch, token)  # a try whose answer was lost may have opened a child
            raise
        if found.decided:
            return None
        return Attempt(
            transactional_id=found.transactional_id,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            token=token,
            slot=found.slot,
        )

    def sender(self, attempt: Attempt) -> JointSender:
        return JointSender(self._client, attempt)

    def abort_attempt(self, batch: BatchOf, attempt: Attempt) -> None:
        self._abort_token(batch, attempt.token)

    def _abort_token(self, batch: BatchOf, token: bytes) -> None:
        request = AbortJointRequest(
            group_id=batch.group, location=batch.location, run=batch.run, sequence=batch.sequence, token=token
        )
        try:
            self._joint.abort(request, ABORT_TIMEOUT_MS)
        except QuorumlogError:
            pass  # the batch's abort, its next decision, or the time-out ends it

    def commit(self, batch: BatchOf, attempts: Sequence[Attempt], totals: Mapping[str, int]) -> None:
        """See `Delivery`. Raises JointRefused, NoJointTransactions, Unavailable; after the last one the batch may be
        decided, and Spark's repetition tells."""
        request = CommitJointRequest(
            group_id=batch.group,
            kind=batch.kind,
            location=batch.location,
            run=batch.run,
            sequence=batch.sequence,
            children=tuple(
                JointChildRef(slot=one.slot, producer_epoch=one.producer_epoch, token=one.token) for one in attempts
            ),
            facts=facts_of(totals, batch.query),
            commit_wait_ms=COMMIT_WAIT_MS,
            first_batch=self._once.first_batch,
            checkpoint_moved=self._once.checkpoint_moved,
            replay_mismatch=self._once.replay_mismatch,
        )
        answer: CommitJointResponse = self._explained(lambda: self._joint.commit(request))
        if not answer.complete:
            warnings.warn(
                f"sequence {batch.sequence} of {batch.group} is decided, and readers of committed records do not see "
                f"all of it after {COMMIT_WAIT_MS} ms: a leader is slow or gone. The cluster goes on by itself",
                stacklevel=2,
            )

    def abort(self, batch: BatchOf, attempts: Sequence[Attempt] | None) -> None:
        """batch.group, batch.run: "" where the driver does not know them; then they are found by what is open.

        A task that did not tell may still begin: Spark ends its Python worker 2 to 4 s after the task. The coordinator
        refuses that once it has this abort; without the run, the task is looked for until then. attempts: None where a
        task did not tell.
        """
        for look in range(1 if attempts is not None else LATE_LOOKS):
            if look:
                self._pause(LATE_LOOK_S)
            known = self._known(batch)
            if known is not None:
                self._abort(known)
                return

    def close(self) -> None:
        self._joint.close()

    def _known(self, batch: BatchOf) -> BatchOf | None:
        """With its group and run. None: nothing of it is open, or what is open is of two."""
        if batch.group and batch.run:
            return batch
        found = {(group, child.run) for group, child in self._open_of(batch)}
        if len(found) != 1:  # one of them is another driver's, or another query's
            return None
        ((group, run),) = found
        return replace(batch, group=group, run=run)

    def _open_of(self, batch: BatchOf) -> Iterator[tuple[str, OpenJointChild]]:
        """Of all groups, if the batch's is not known. Another machine may have another checkpoint of this name."""
        for group in self._joint.list_groups():
            if batch.group in ("", group.group_id):
                for child in group.open:
                    if (child.sequence, child.location) == (batch.sequence, batch.location):
                        yield group.group_id, child

    def _abort(self, batch: BatchOf) -> None:
        """The coordinator compares the location, so a group of another checkpoint is left as it is."""
        request = AbortJointRequest(
            group_id=batch.group, location=batch.location, run=batch.run, sequence=batch.sequence
        )
        self._joint.abort(request)

    def _explained(self, call: Callable[[], Any]) -> Any:
        """With the way on, where the coordinator cannot know it."""
        try:
            return call()
        except NotOurs:
            raise
        except NoJointTransactions as error:
            raise NoJointTransactions(f'{error}. Say .option("delivery", "at-least-once") if that will do') from error
        except Superseded as error:
            raise _with(
                error, "another start of this query goes on from its checkpoint: stop one of the two"
            ) from error
        except ReplayDiffers as error:
            if not self._once.sink_id:
                raise
            raise _with(
                error, "If the (query) differs, the checkpoint was begun anew: give it another sinkId, and it writes"
            ) from error
        except ChildNotOpen as error:
            timeout_ms = self._once.transaction_timeout_ms
            raise _with(error, f"transactionTimeout is {timeout_ms} ms; raise it if batches take longer") from error


def _with(error: JointRefused, way_on: str) -> JointRefused:
    return type(error)(error.code, f"{error.message}. {way_on}")


def facts_of(totals: Mapping[str, int], query: str = "") -> tuple[JointFact, ...]:
    """totals: rows by topic. As many facts as a decision holds, each once; equal totals have equal ones.

    query: of a stream with a sinkId. A checkpoint that was begun anew has another one, and its batch 0 may have as many
    rows as the one that was decided.
    """
    named = sorted((_fact_name(topic), rows) for topic, rows in totals.items())
    told, others = named[:TOPICS_TOLD], named[TOPICS_TOLD:]
    if others:
        told = [*told, (OTHERS, sum(rows for _, rows in others)), (OTHERS_DIGEST, _digest_of(others))]
    if query:
        told = [*told, (QUERY_FACT, _digest(query))]
    return tuple(JointFact(name=name, value=value) for name, value in told)


def _fact_name(topic: str) -> str:
    if len(topic) <= NAME_BYTES:
        return topic
    digest = hashlib.sha256(topic.encode()).hexdigest()[:16]
    return f"{topic[: NAME_BYTES - len(digest) - 1]}~{digest}"  # no topic's name has a ~


def _digest_of(facts: Iterable[tuple[str, int]]) -> int:
    return _digest("\n".join(f"{name}={rows}" for name, rows in facts))


def _digest(text: str) -> int:
    """63 bits."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
