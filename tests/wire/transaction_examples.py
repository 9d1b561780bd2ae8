"""One request and one response of every call of a transaction, as Kafka's JSON and as our messages.

`python -m tests.wire.transaction_examples | java -cp "JARS/*:DIRECTORY" GroupMessages >
tests/wire/golden/transaction_messages.txt` writes the golden bytes with the classes of Kafka itself.
"""

from __future__ import annotations

import json

from quorumlog.messages import groups, produce, transactions
from tests.wire.example import Example, of_version, since
from tests.wire.transaction_tool_examples import DESCRIBE, LIST, MARKERS, PRODUCERS

INIT = Example(
    22,
    "InitProducerId",
    0,
    5,
    lambda v: {
        "transactionalId": "tx11",
        "transactionTimeoutMs": 60_000,
        "producerId@3": 1001,
        "producerEpoch@3": 4,
    },
    lambda v: {"throttleTimeMs": 7, "errorCode": since(v, 4, 90, 47), "producerId": 1001, "producerEpoch": 5},
    lambda v: produce.InitProducerIdRequest(
        transactional_id="tx11",
        transaction_timeout_ms=60_000,
        producer_id=since(v, 3, 1001, -1),
        producer_epoch=since(v, 3, 4, -1),
        takes_producer_fenced=v >= 4,
    ),
    lambda v: produce.InitProducerIdResponse(
        throttle_time_ms=7, error_code=since(v, 4, 90, 47), producer_id=1001, producer_epoch=5
    ),
)

_TOPICS = [{"name": "t", "partitions": [0, 2]}, {"name": "u", "partitions": [1]}]
_RESULTS = [
    {
        "name": "t",
        "resultsByPartition": [
            {"partitionIndex": 0, "partitionErrorCode": 0},
            {"partitionIndex": 2, "partitionErrorCode": 51},
        ],
    }
]
_OUR_TOPICS = (
    transactions.TransactionTopic(name="t", partitions=(0, 2)),
    transactions.TransactionTopic(name="u", partitions=(1,)),
)
_OUR_RESULTS = (
    transactions.TransactionTopicResult(
        name="t",
        partitions=(
            transactions.TransactionPartitionResult(index=0),
            transactions.TransactionPartitionResult(index=2, error_code=51),
        ),
    ),
)
ADD_PARTITIONS = Example(
    24,
    "AddPartitionsToTxn",
    0,
    5,
    lambda v: {
        "v3AndBelowTransactionalId@0-3": "tx11",
        "v3AndBelowProducerId@0-3": 1001,
        "v3AndBelowProducerEpoch@0-3": 5,
        "v3AndBelowTopics@0-3": _TOPICS,
        "transactions@4": [
            {
                "transactionalId": "tx11",
                "producerId": 1001,
                "producerEpoch": 5,
                "verifyOnly": True,
                "topics": _TOPICS,
            },
            {"transactionalId": "b", "producerId": 7, "producerEpoch": 0, "verifyOnly": False, "topics": []},
        ],
    },
    lambda v: {
        "throttleTimeMs": 7,
        "errorCode@4": 0,
        "resultsByTransaction@4": [
            {"transactionalId": "tx11", "topicResults": _RESULTS},
            {"transactionalId": "b", "topicResults": []},
        ],
        "resultsByTopicV3AndBelow@0-3": _RESULTS,
    },
    lambda v: transactions.AddPartitionsToTxnRequest(
        transactions=(
            transactions.TransactionToExtend(
                transactional_id="tx11",
                producer_id=1001,
                producer_epoch=5,
                verify_only=v >= 4,
                topics=_OUR_TOPICS,
                transaction_version=since(v, 4, 2, 0),
                takes_producer_fenced=v >= 2,
            ),
            *(
                [
                    transactions.TransactionToExtend(
                        transactional_id="b", producer_id=7, producer_epoch=0, transaction_version=2
                    )
                ]
                if v >= 4
                else []
            ),
        )
    ),
    lambda v: transactions.AddPartitionsToTxnResponse(
        throttle_time_ms=7,
        results=(
            transactions.ExtendedTransaction(transactional_id="tx11", topics=_OUR_RESULTS),
            *([transactions.ExtendedTransaction(transactional_id="b")] if v >= 4 else []),
        ),
    ),
)
ADD_OFFSETS = Example(
    25,
    "AddOffsetsToTxn",
    0,
    4,
    lambda v: {"transactionalId": "tx11", "producerId": 1001, "producerEpoch": 5, "groupId": "g"},
    lambda v: {"throttleTimeMs": 7, "errorCode": since(v, 2, 90, 47)},
    lambda v: transactions.AddOffsetsToTxnRequest(
        transactional_id="tx11", producer_id=1001, producer_epoch=5, group_id="g", takes_producer_fenced=v >= 2
    ),
    lambda v: transactions.AddOffsetsToTxnResponse(throttle_time_ms=7, error_code=since(v, 2, 90, 47)),
)
END = Example(
    26,
    "EndTxn",
    0,
    5,
    lambda v: {"transactionalId": "tx11", "producerId": 1001, "producerEpoch": 5, "committed": True},
    lambda v: {"throttleTimeMs": 7, "errorCode": 0, "producerId@5": 1001, "producerEpoch@5": 6},
    lambda v: transactions.EndTxnRequest(
        transactional_id="tx11",
        producer_id=1001,
        producer_epoch=5,
        committed=True,
        transaction_version=since(v, 5, 2, 0),
        takes_producer_fenced=v >= 2,
    ),
    lambda v: transactions.EndTxnResponse(throttle_time_ms=7, producer_id=1001, producer_epoch=6),
)
OFFSETS = Example(
    28,
    "TxnOffsetCommit",
    0,
    5,
    lambda v: {
        "transactionalId": "tx11",
        "groupId": "g",
        "producerId": 1001,
        "producerEpoch": 5,
        "generationId@3": 3,
        "memberId@3": "m1",
        "groupInstanceId@3": "i1",
        "topics": [
            {
                "name": "t",
                "partitions": [
                    {"partitionIndex": 0, "committedOffset": 42, "committedLeaderEpoch@2": 5, "committedMetadata": "m"},
                    {
                        "partitionIndex": 1,
                        "committedOffset": 0,
                        "committedLeaderEpoch@2": -1,
                        "committedMetadata": None,
                    },
                ],
            }
        ],
    },
    lambda v: {
        "throttleTimeMs": 7,
        "topics": [
            {
                "name": "t",
                "partitions": [
                    {"partitionIndex": 0, "errorCode": 0},
                    {"partitionIndex": 1, "errorCode": since(v, 2, 14, 15)},
                ],
            }
        ],
    },
    lambda v: transactions.TxnOffsetCommitRequest(
        transactional_id="tx11",
        group_id="g",
        producer_id=1001,
        producer_epoch=5,
        generation_id=since(v, 3, 3, -1),
        member_id=since(v, 3, "m1", ""),
        group_instance_id=since(v, 3, "i1", None),
        topics=(
            groups.OffsetCommitTopic(
                name="t",
                partitions=(
                    groups.OffsetCommitPartition(
                        index=0, committed_offset=42, committed_leader_epoch=since(v, 2, 5, -1), committed_metadata="m"
                    ),
                    groups.OffsetCommitPartition(index=1, committed_offset=0, committed_metadata=None),
                ),
            ),
        ),
        transaction_version=since(v, 5, 2, 0),
        takes_abortable=v >= 4,
    ),
    lambda v: transactions.TxnOffsetCommitResponse(
        throttle_time_ms=7,
        topics=(
            groups.OffsetCommitTopicResult(
                name="t",
                partitions=(
                    groups.OffsetCommitPartitionResult(index=0),
                    groups.OffsetCommitPartitionResult(index=1, error_code=14),
                ),
            ),
        ),
    ),
)

EXAMPLES = (INIT, ADD_PARTITIONS, ADD_OFFSETS, END, OFFSETS, MARKERS, DESCRIBE, LIST, PRODUCERS)

if __name__ == "__main__":
    for one in EXAMPLES:
        for number in range(one.oldest, one.newest + 1):
            for side, values in (("Request", one.request), ("Response", one.response)):
                print(f"{one.name}{side} {number} {json.dumps(of_version(values(number), number))}")
