"""Writes docs/errors.md from the table of error codes: `python proto/generate_errors.py [--check]`.

--check exits with 1 if the page is stale. A code without a row in ADVICE is an error: who adds one says what to do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from quorumlog.errors import ErrorCode

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "errors.md"
FIRST_OF_OURS = 20_000  # below are Kafka's numbers
HEAD = """\
# Errors

Written by `./dev proto` from the table of codes (`quorumlog/errors.py`). A client gets them as `RequestFailed.code`, a
command tells them in its message and, with `-o json`, as `error.error`. Numbers and names are Apache Kafka's.

*Retriable*: the same request may succeed later, and our clients repeat it by themselves until their time limit
(`default.api.timeout.ms`, `delivery.timeout.ms`). It does not say that the request did nothing: a retriable answer to a
produce may follow the append, which is why producers number their batches.

"""
OURS = """
## Of joint transactions

Only quorumlog has these, and never on Kafka's wire ([joint transactions](joint-transactions.md)).

"""
_CLIENT = "The client does it: asks for new metadata and repeats."
_UPGRADE = "Upgrade the older side, or use what both know: `quorumlog feature describe`."
_OPERATOR = "An operator's task: `quorumlog explain`."
_BETWEEN_NODES = "Between nodes: the node repeats it. If it stays, `quorumlog explain quorum`."
_RIGHTS = "`quorumlog acl test PRINCIPAL OPERATION RESOURCE` says which rule decides; an administrator adds one."
_GROUP = "The client does it: joins the group again. Records since the last commit come once more."
_BUG = "A client that is wrong: look for a newer version of it."
_NEW_PRODUCER = "Close the producer and make a new one; it aborts what the old one has left open."
_LATER = "Wait; the client repeats it."
# By name: what it means; what to do.
ADVICE: dict[str, tuple[str, str]] = {
    "UNKNOWN_SERVER_ERROR": (
        "a mistake of the node's",
        "The node's log has the traceback: `quorumlog logs --level error`.",
    ),
    "OFFSET_OUT_OF_RANGE": (
        "nothing is at this offset: records were deleted, or it is past the end",
        "`auto.offset.reset` says where to go on; `quorumlog topic offsets TOPIC` shows the range.",
    ),
    "CORRUPT_MESSAGE": (
        "a batch's checksum does not match",
        "Repeat; if it stays on one leader, `quorumlog log verify`.",
    ),
    "UNKNOWN_TOPIC_OR_PARTITION": ("there is no such topic or partition, or not yet here", "`quorumlog topic list`."),
    "INVALID_FETCH_SIZE": ("a size in a fetch is negative", _BUG),
    "LEADER_NOT_AVAILABLE": ("a leader is being elected", "Wait; if it lasts, `quorumlog explain partition TOPIC-N`."),
    "NOT_LEADER_OR_FOLLOWER": ("the partition has moved to another broker", _CLIENT),
    "REQUEST_TIMED_OUT": ("the request was not finished in its time", "Repeat; `quorumlog check` says what is slow."),
    "BROKER_NOT_AVAILABLE": ("the broker that is meant is not alive", "`quorumlog broker list`."),
    "REPLICA_NOT_AVAILABLE": ("this broker has no replica of it", _CLIENT),
    "MESSAGE_TOO_LARGE": (
        "a batch is larger than the topic allows",
        "Smaller records, or `max.message.bytes` of the topic.",
    ),
    "OFFSET_METADATA_TOO_LARGE": (
        "the text of a committed offset is too long",
        "Shorten it, or `offset.metadata.max.bytes`.",
    ),
    "NETWORK_EXCEPTION": ("the connection was lost before the answer", _CLIENT),
    "COORDINATOR_LOAD_IN_PROGRESS": ("a coordinator reads its log after it was elected", _LATER),
    "COORDINATOR_NOT_AVAILABLE": (
        "the coordinator's partition has no leader",
        "Wait; if it lasts, `quorumlog explain group NAME`.",
    ),
    "NOT_COORDINATOR": ("another broker coordinates by now", _CLIENT),
    "INVALID_TOPIC_EXCEPTION": (
        "a name that no topic may have, or one of the internal topics",
        "Letters, digits, `.`, `_`, `-`; at most 249.",
    ),
    "RECORD_LIST_TOO_LARGE": (
        "a batch is larger than a segment",
        "Smaller batches (`batch.size`), or `segment.bytes` of the topic.",
    ),
    "NOT_ENOUGH_REPLICAS": (
        "fewer replicas are in sync than `min.insync.replicas`; nothing was appended",
        "Bring brokers back: `quorumlog explain partition TOPIC-N`.",
    ),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": (
        "the same, found after the append: the records may stay",
        "As above; an idempotent producer repeats without a second copy.",
    ),
    "INVALID_REQUIRED_ACKS": ("`acks` is none of 0, 1, all", "Correct the producer's `acks`."),
    "ILLEGAL_GENERATION": ("the group has rebalanced since", _GROUP),
    "INCONSISTENT_GROUP_PROTOCOL": (
        "the member has no assignor in common with the group",
        "Give all members one common `partition.assignment.strategy`.",
    ),
    "INVALID_GROUP_ID": ("no group may have this name, or the group is of another kind", "Choose another `group.id`."),
    "UNKNOWN_MEMBER_ID": (
        "the group has removed this member, because it was silent",
        f"{_GROUP} If often: `max.poll.interval.ms`, `session.timeout.ms`.",
    ),
    "INVALID_SESSION_TIMEOUT": (
        "outside of the broker's limits",
        "Between `group.min.session.timeout.ms` and `group.max.session.timeout.ms`.",
    ),
    "REBALANCE_IN_PROGRESS": ("the group is choosing who reads what", _GROUP),
    "INVALID_COMMIT_OFFSET_SIZE": (
        "a commit with its texts is larger than a batch",
        "Commit fewer partitions at a time, with shorter texts.",
    ),
    "TOPIC_AUTHORIZATION_FAILED": ("no right to the topic", _RIGHTS),
    "GROUP_AUTHORIZATION_FAILED": ("no right to the group", _RIGHTS),
    "CLUSTER_AUTHORIZATION_FAILED": ("no right to the cluster", _RIGHTS),
    "INVALID_TIMESTAMP": (
        "a record's time is too far from the broker's",
        "Mend the clock, or `message.timestamp.before.max.ms` and `...after.max.ms`.",
    ),
    "UNSUPPORTED_SASL_MECHANISM": (
        "the listener does not have this way to log in",
        "One of `sasl.enabled.mechanisms` of the listener.",
    ),
    "ILLEGAL_SASL_STATE": ("a request that may not come before, or in, the login", _BUG),
    "UNSUPPORTED_VERSION": ("the other side does not know this request, version or feature", _UPGRADE),
    "TOPIC_ALREADY_EXISTS": ("a topic has this name", "`quorumlog topic create --if-not-exists`, or another name."),
    "INVALID_PARTITIONS": ("fewer partitions than there are, or below 1", "Partitions can only be added."),
    "INVALID_REPLICATION_FACTOR": (
        "more replicas than brokers that may hold them, or below 1",
        "`quorumlog broker list` shows who is there, and who is cordoned.",
    ),
    "INVALID_REPLICA_ASSIGNMENT": (
        "a list of replicas names a broker twice, or one that is not there",
        "Correct the assignment; `quorumlog broker list`.",
    ),
    "INVALID_CONFIG": (
        "a setting's name or value is not valid",
        "The message names it; [settings](settings.md) has the limits.",
    ),
    "NOT_CONTROLLER": ("another node is the active controller by now", _CLIENT),
    "INVALID_REQUEST": ("the request contradicts itself; the message says how", "Correct what the message names."),
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": (
        "records of this old format cannot do this",
        "Write them anew by a producer of today.",
    ),
    "POLICY_VIOLATION": ("a rule of the cluster refuses it; the message says which", "Ask who runs the cluster."),
    "OUT_OF_ORDER_SEQUENCE_NUMBER": (
        "a batch of this producer is missing before this one",
        f"An earlier batch has failed for good. {_NEW_PRODUCER}",
    ),
    "DUPLICATE_SEQUENCE_NUMBER": (
        "the batch was appended already, too long ago to say where",
        "The records are in the log; go on.",
    ),
    "INVALID_PRODUCER_EPOCH": (
        "a newer producer has this transactional id, or the transaction was aborted",
        _NEW_PRODUCER,
    ),
    "INVALID_TXN_STATE": (
        "the transaction is not in a state for this",
        "Abort it, and begin again; `quorumlog transaction describe ID`.",
    ),
    "INVALID_PRODUCER_ID_MAPPING": ("the transactional id has another producer id, or has expired", _NEW_PRODUCER),
    "INVALID_TRANSACTION_TIMEOUT": ("longer than the broker allows", "At most `transaction.max.timeout.ms`."),
    "CONCURRENT_TRANSACTIONS": ("the transaction before it is still being finished", _LATER),
    "TRANSACTION_COORDINATOR_FENCED": ("markers of an earlier coordinator", _BETWEEN_NODES),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": ("no right to the transactional id", _RIGHTS),
    "SECURITY_DISABLED": (
        "there are no access rules on this cluster",
        "Set `authorizer.class.name`: [security](security.md).",
    ),
    "OPERATION_NOT_ATTEMPTED": (
        "another part of the same request has failed before",
        "Mend that part, and send it again.",
    ),
    "KAFKA_STORAGE_ERROR": ("the disk of the replica has failed", "`quorumlog log-dirs list`, `quorumlog explain`."),
    "LOG_DIR_NOT_FOUND": ("the broker has no such log directory", "`quorumlog log-dirs list`."),
    "SASL_AUTHENTICATION_FAILED": (
        "wrong user, password or token",
        "Correct them; the broker's log names who was refused.",
    ),
    "UNKNOWN_PRODUCER_ID": ("nothing is known of this producer here: its records have expired", _NEW_PRODUCER),
    "DELEGATION_TOKEN_AUTH_DISABLED": (
        "there are no delegation tokens",
        "Log in by SCRAM, OAUTHBEARER or a certificate.",
    ),
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": (
        "there are no delegation tokens",
        "Log in by SCRAM, OAUTHBEARER or a certificate.",
    ),
    "INVALID_PRINCIPAL_TYPE": ("a principal is `User:NAME`", "Correct it."),
    "NON_EMPTY_GROUP": ("the group has members", "Stop them first; `quorumlog group describe NAME --members`."),
    "GROUP_ID_NOT_FOUND": ("there is no such group", "`quorumlog group list`."),
    "FETCH_SESSION_ID_NOT_FOUND": (
        "the broker has forgotten the fetch session",
        "The client does it: begins a new session.",
    ),
    "INVALID_FETCH_SESSION_EPOCH": (
        "requests of a fetch session came out of order",
        "The client does it: begins a new session.",
    ),
    "LISTENER_NOT_FOUND": ("the leader has no listener of this name", "Give all brokers the same listeners."),
    "TOPIC_DELETION_DISABLED": ("`delete.topic.enable` is false", "Ask who runs the cluster."),
    "FENCED_LEADER_EPOCH": ("the request names an older leader than there is", _CLIENT),
    "UNKNOWN_LEADER_EPOCH": ("the request names a newer leader than this broker knows", _LATER),
    "UNSUPPORTED_COMPRESSION_TYPE": ("this codec is not for this request's version", _UPGRADE),
    "STALE_BROKER_EPOCH": ("of an earlier life of the broker", _BETWEEN_NODES),
    "OFFSET_NOT_AVAILABLE": ("a new leader does not know yet how far it may answer", _LATER),
    "MEMBER_ID_REQUIRED": (
        "the first of two steps of joining: here is your id",
        "The client does it: joins with the id.",
    ),
    "PREFERRED_LEADER_NOT_AVAILABLE": (
        "the first replica is not in sync or not alive",
        "`quorumlog explain partition TOPIC-N`.",
    ),
    "GROUP_MAX_SIZE_REACHED": ("the group has `group.max.size` members", "Fewer members, or raise the setting."),
    "FENCED_INSTANCE_ID": ("another member has the same `group.instance.id`", "Give each process one of its own."),
    "ELIGIBLE_LEADERS_NOT_AVAILABLE": (
        "no replica may lead",
        "Bring a replica of the ISR back: `quorumlog explain partition TOPIC-N`.",
    ),
    "ELECTION_NOT_NEEDED": ("the partition has that leader already", "Nothing to do."),
    "NO_REASSIGNMENT_IN_PROGRESS": ("nothing is being moved there", "Nothing to cancel; `quorumlog partition status`."),
    "GROUP_SUBSCRIBED_TO_TOPIC": ("a member reads the topic whose offsets are to go", "Stop the member first."),
    "INVALID_RECORD": (
        "a record that the topic refuses, such as one without a key in a compacted topic",
        "The message names the record; correct it.",
    ),
    "UNSTABLE_OFFSET_COMMIT": ("an open transaction will commit offsets of this group", _LATER),
    "THROTTLING_QUOTA_EXCEEDED": ("a quota on changes is used up", f"{_LATER} `quorumlog quota list`."),
    "PRODUCER_FENCED": ("a newer producer has this transactional id", "Stop this process: another one has taken over."),
    "RESOURCE_NOT_FOUND": ("there is no such user or resource", "`quorumlog user list`."),
    "DUPLICATE_RESOURCE": ("a request names one thing twice", "Name it once."),
    "UNACCEPTABLE_CREDENTIAL": ("a name or number of iterations that is not allowed", "The message says which."),
    "INCONSISTENT_VOTER_SET": ("nodes disagree about who votes", _OPERATOR),
    "INVALID_UPDATE_VERSION": ("a feature cannot have this level here", "`quorumlog feature describe`."),
    "FEATURE_UPDATE_FAILED": (
        "a node does not know the level, or something needs the old one",
        "The message names the node; `quorumlog feature upgrade --dry-run`.",
    ),
    "SNAPSHOT_NOT_FOUND": ("the snapshot of the metadata has gone", _BETWEEN_NODES),
    "POSITION_OUT_OF_RANGE": ("past the end of a snapshot", _BETWEEN_NODES),
    "UNKNOWN_TOPIC_ID": ("the topic was deleted, perhaps made anew, or is not known here yet", _CLIENT),
    "DUPLICATE_BROKER_REGISTRATION": ("another live node has this `node.id`", "Give each node an id of its own."),
    "BROKER_ID_NOT_REGISTERED": ("no broker has this id", "`quorumlog broker list`."),
    "INCONSISTENT_TOPIC_ID": ("the topic of this name is another one by now", _CLIENT),
    "INCONSISTENT_CLUSTER_ID": (
        "the node or client means another cluster",
        "Look at the addresses; `quorumlog storage info`.",
    ),
    "TRANSACTIONAL_ID_NOT_FOUND": ("no such transactional id is known", "`quorumlog transaction list`."),
    "FETCH_SESSION_TOPIC_ID_ERROR": (
        "a fetch session with and without topic ids",
        "The client does it: begins a new session.",
    ),
    "INELIGIBLE_REPLICA": ("a replica that may not join the ISR: it is fenced, or shutting down", _BETWEEN_NODES),
    "NEW_LEADER_ELECTED": ("the change of the ISR has elected another leader", _BETWEEN_NODES),
    "FENCED_MEMBER_EPOCH": ("the group has given this member's place away", _GROUP),
    "UNRELEASED_INSTANCE_ID": (
        "the earlier process with this `group.instance.id` is still a member",
        "Stop it, or wait for its session to end.",
    ),
    "UNSUPPORTED_ASSIGNOR": ("the broker has no such assignor", "One of `group.consumer.assignors`."),
    "STALE_MEMBER_EPOCH": ("the member has to hear of the last assignment first", _LATER),
    "MISMATCHED_ENDPOINT_TYPE": (
        "a question for controllers was put to a broker, or the reverse",
        "Give the address of a broker; Kafka's tools ask controllers by `--bootstrap-controller`.",
    ),
    "UNSUPPORTED_ENDPOINT_TYPE": ("an unknown kind of endpoint", _BUG),
    "INVALID_REGISTRATION": (
        "what the broker tells about itself is not accepted",
        "The message says what; correct the node's file.",
    ),
    "TRANSACTION_ABORTABLE": (
        "the transaction has failed; the producer goes on",
        "Abort the transaction, and do it again.",
    ),
    "INVALID_VOTER_KEY": (
        "id and directory of a voter do not belong together",
        "`quorumlog quorum replication` shows both.",
    ),
    "DUPLICATE_VOTER": ("the node votes already", "Nothing to do; `quorumlog quorum replication`."),
    "VOTER_NOT_FOUND": ("no such voter", "`quorumlog quorum replication`."),
    "INVALID_REGULAR_EXPRESSION": (
        "RE2 cannot read the pattern of a subscription",
        "Correct it: RE2 has no look-ahead and no back references.",
    ),
    "CHECKPOINT_COPIED": (
        "another stream writes by the same checkpoint",
        "Give the copy a checkpoint of its own: [Spark](spark.md#exactly-once).",
    ),
    "SUPERSEDED": ("a newer run of the stream has taken over", "Stop this run."),
    "CHECKPOINT_ROLLED_BACK": (
        "the checkpoint is older than what was decided",
        "Take the newest checkpoint, or begin with a new one.",
    ),
    "DECISION_MISSING": (
        "what was decided before has expired",
        "[Exactly once](spark.md#exactly-once) says how to go on.",
    ),
    "REPLAY_DIFFERS": (
        "a batch is repeated with other contents",
        "The query must be deterministic: [Spark](spark.md#exactly-once).",
    ),
    "CHILD_NOT_OPEN": (
        "a task's part of the transaction is not open any more",
        "The stream does it: the batch is written again.",
    ),
    "TOO_MANY_CHILDREN": ("more parts than one decision can hold", "Fewer partitions: `coalesce` before the write."),
    "JOINT_GROUP_OPEN": (
        "a writer has a transaction open",
        "`quorumlog spark sink list --open`; `sink abort` ends it.",
    ),
}


def page() -> str:
    """The page's text, made anew. Raises KeyError for a code without advice."""
    codes = [code for code in sorted(ErrorCode) if code is not ErrorCode.NONE]
    kafkas = [code for code in codes if code < FIRST_OF_OURS]
    return HEAD + _table(kafkas) + OURS + _table([code for code in codes if code >= FIRST_OF_OURS])


def _table(codes: Sequence[ErrorCode]) -> str:
    rows = [("number", "name", "retriable", "what it means", "what to do"), ("---:", "---", "---", "---", "---")]
    for code in codes:
        means, to_do = ADVICE[code.name]
        rows.append((str(int(code)), f"`{code.name}`", "yes" if code.retriable else "", means, to_do))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        PAGE.write_text(page())
        return 0
    if not PAGE.exists() or PAGE.read_text() != page():
        print(f"{PAGE.relative_to(ROOT)} is stale: ./dev proto", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
