"""What coordinators and tools call: WriteTxnMarkers, DescribeTransactions, ListTransactions, DescribeProducers."""

from __future__ import annotations

from quorumlog.messages import transactions
from tests.wire.example import Example, since

MARKERS = Example(
    27,
    "WriteTxnMarkers",
    1,
    2,
    lambda v: {
        "markers": [
            {
                "producerId": 1001,
                "producerEpoch": 6,
                "transactionResult": True,
                "topics": [{"name": "t", "partitionIndexes": [0, 2]}],
                "coordinatorEpoch": 3,
                "transactionVersion@2": 2,
            },
            {
                "producerId": 7,
                "producerEpoch": 0,
                "transactionResult": False,
                "topics": [],
                "coordinatorEpoch": 4,
                "transactionVersion@2": 0,
            },
        ]
    },
    lambda v: {
        "markers": [
            {
                "producerId": 1001,
                "topics": [
                    {
                        "name": "t",
                        "partitions": [{"partitionIndex": 0, "errorCode": 0}, {"partitionIndex": 2, "errorCode": 52}],
                    }
                ],
            }
        ]
    },
    lambda v: transactions.WriteTxnMarkersRequest(
        markers=(
            transactions.TransactionMarker(
                producer_id=1001,
                producer_epoch=6,
                committed=True,
                topics=(transactions.TransactionTopic(name="t", partitions=(0, 2)),),
                coordinator_epoch=3,
                transaction_version=since(v, 2, 2, 0),
            ),
            transactions.TransactionMarker(producer_id=7, producer_epoch=0, committed=False, coordinator_epoch=4),
        )
    ),
    lambda v: transactions.WriteTxnMarkersResponse(
        markers=(
            transactions.WrittenMarker(
                producer_id=1001,
                topics=(
                    transactions.TransactionTopicResult(
                        name="t",
                        partitions=(
                            transactions.TransactionPartitionResult(index=0),
                            transactions.TransactionPartitionResult(index=2, error_code=52),
                        ),
                    ),
                ),
            ),
        )
    ),
)
DESCRIBE = Example(
    65,
    "DescribeTransactions",
    0,
    0,
    lambda v: {"transactionalIds": ["tx11", "b"]},
    lambda v: {
        "throttleTimeMs": 7,
        "transactionStates": [
            {
                "errorCode": 0,
                "transactionalId": "tx11",
                "transactionState": "Ongoing",
                "transactionTimeoutMs": 60_000,
                "transactionStartTimeMs": 1_700_000_000_000,
                "producerId": 1001,
                "producerEpoch": 5,
                "topics": [{"topic": "t", "partitions": [0, 2]}],
            },
            {
                "errorCode": 105,
                "transactionalId": "b",
                "transactionState": "",
                "transactionTimeoutMs": 0,
                "transactionStartTimeMs": -1,
                "producerId": -1,
                "producerEpoch": -1,
                "topics": [],
            },
        ],
    },
    lambda v: transactions.DescribeTransactionsRequest(transactional_ids=("tx11", "b")),
    lambda v: transactions.DescribeTransactionsResponse(
        throttle_time_ms=7,
        transactions=(
            transactions.DescribedTransaction(
                transactional_id="tx11",
                state="Ongoing",
                transaction_timeout_ms=60_000,
                transaction_start_time_ms=1_700_000_000_000,
                producer_id=1001,
                producer_epoch=5,
                topics=(transactions.TransactionTopic(name="t", partitions=(0, 2)),),
            ),
            transactions.DescribedTransaction(transactional_id="b", error_code=105),
        ),
    ),
)
LIST = Example(
    66,
    "ListTransactions",
    0,
    2,
    lambda v: {
        "stateFilters": ["Ongoing"],
        "producerIdFilters": [1001],
        "durationFilter@1": 5_000,
        "transactionalIdPattern@2": "tx.*",
    },
    lambda v: {
        "throttleTimeMs": 7,
        "errorCode": 0,
        "unknownStateFilters": ["Odd"],
        "transactionStates": [{"transactionalId": "tx11", "producerId": 1001, "transactionState": "Ongoing"}],
    },
    lambda v: transactions.ListTransactionsRequest(
        state_filters=("Ongoing",),
        producer_id_filters=(1001,),
        duration_filter_ms=since(v, 1, 5_000, -1),
        transactional_id_pattern=since(v, 2, "tx.*", None),
    ),
    lambda v: transactions.ListTransactionsResponse(
        throttle_time_ms=7,
        unknown_state_filters=("Odd",),
        transactions=(transactions.ListedTransaction(transactional_id="tx11", producer_id=1001, state="Ongoing"),),
    ),
)
PRODUCERS = Example(
    61,
    "DescribeProducers",
    0,
    0,
    lambda v: {"topics": [{"name": "t", "partitionIndexes": [0, 1]}]},
    lambda v: {
        "throttleTimeMs": 7,
        "topics": [
            {
                "name": "t",
                "partitions": [
                    {
                        "partitionIndex": 0,
                        "errorCode": 0,
                        "errorMessage": None,
                        "activeProducers": [
                            {
                                "producerId": 1001,
                                "producerEpoch": 5,
                                "lastSequence": 9,
                                "lastTimestamp": 1_700_000_000_000,
                                "coordinatorEpoch": 3,
                                "currentTxnStartOffset": 40,
                            }
                        ],
                    },
                    {"partitionIndex": 1, "errorCode": 6, "errorMessage": "elsewhere", "activeProducers": []},
                ],
            }
        ],
    },
    lambda v: transactions.DescribeProducersRequest(
        topics=(transactions.TransactionTopic(name="t", partitions=(0, 1)),)
    ),
    lambda v: transactions.DescribeProducersResponse(
        throttle_time_ms=7,
        topics=(
            transactions.ProducersOfTopic(
                name="t",
                partitions=(
                    transactions.ProducersOfPartition(
                        index=0,
                        active_producers=(
                            transactions.ActiveProducer(
                                producer_id=1001,
                                producer_epoch=5,
                                last_sequence=9,
                                last_timestamp_ms=1_700_000_000_000,
                                coordinator_epoch=3,
                                current_transaction_start_offset=40,
                            ),
                        ),
                    ),
                    transactions.ProducersOfPartition(index=1, error_code=6, error_message="elsewhere"),
                ),
            ),
        ),
    ),
)
