"""ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments by example.

`python -m tests.wire.reassignment_examples | java -cp "JARS/*:DIRECTORY" GroupMessages` writes the golden bytes
(tests/wire/golden/reassignment_messages.txt) with the classes of Kafka itself (tests/wire/golden/GroupMessages.java).
"""

from __future__ import annotations

import json

from quorumlog.messages import reassignments as ours
from tests.wire.example import Example, of_version, since

ALL_FROM = 2  # the version of ElectLeaders whose example names no topics

ELECT = Example(
    43,
    "ElectLeaders",
    0,
    2,
    lambda v: {
        "electionType@1": 1,
        "topicPartitions": None if v >= ALL_FROM else [{"topic": "t", "partitions": [0, 7]}],
        "timeoutMs": 30_000,
    },
    lambda v: {
        "throttleTimeMs": 5,
        "errorCode@1": 41,
        "replicaElectionResults": [
            {
                "topic": "t",
                "partitionResult": [
                    {"partitionId": 0, "errorCode": 0, "errorMessage": None},
                    {"partitionId": 7, "errorCode": 84, "errorMessage": "it leads"},
                ],
            }
        ],
    },
    lambda v: ours.ElectLeadersRequest(
        election_type=since(v, 1, 1, 0),
        all_partitions=v >= ALL_FROM,
        topics=() if v >= ALL_FROM else (ours.ElectionTopic(name="t", partitions=(0, 7)),),
        timeout_ms=30_000,
    ),
    lambda v: ours.ElectLeadersResponse(
        throttle_time_ms=5,
        error_code=since(v, 1, 41, 0),
        topics=(
            ours.ElectionTopicResult(
                name="t",
                partitions=(
                    ours.ElectionPartitionResult(index=0),
                    ours.ElectionPartitionResult(index=7, error_code=84, error_message="it leads"),
                ),
            ),
        ),
    ),
)
ALTER = Example(
    45,
    "AlterPartitionReassignments",
    0,
    1,
    lambda v: {
        "timeoutMs": 30_000,
        "allowReplicationFactorChange@1": False,
        "topics": [
            {
                "name": "t",
                "partitions": [
                    {"partitionIndex": 0, "replicas": [3, 1, 2]},
                    {"partitionIndex": 7, "replicas": None},
                    {"partitionIndex": 8, "replicas": []},
                ],
            }
        ],
    },
    lambda v: {
        "throttleTimeMs": 5,
        "allowReplicationFactorChange@1": False,
        "errorCode": 0,
        "errorMessage": None,
        "responses": [
            {
                "name": "t",
                "partitions": [
                    {"partitionIndex": 0, "errorCode": 0, "errorMessage": None},
                    {"partitionIndex": 7, "errorCode": 85, "errorMessage": "none is under way"},
                ],
            }
        ],
    },
    lambda v: ours.AlterPartitionReassignmentsRequest(
        timeout_ms=30_000,
        allow_replication_factor_change=v < 1,
        topics=(
            ours.ReassignableTopic(
                name="t",
                partitions=(
                    ours.ReassignablePartition(index=0, replicas=(3, 1, 2)),
                    ours.ReassignablePartition(index=7, cancel=True),
                    ours.ReassignablePartition(index=8),
                ),
            ),
        ),
    ),
    lambda v: ours.AlterPartitionReassignmentsResponse(
        throttle_time_ms=5,
        allow_replication_factor_change=v < 1,
        topics=(
            ours.ReassignableTopicResult(
                name="t",
                partitions=(
                    ours.ReassignablePartitionResult(index=0),
                    ours.ReassignablePartitionResult(index=7, error_code=85, error_message="none is under way"),
                ),
            ),
        ),
    ),
)
LIST = Example(
    46,
    "ListPartitionReassignments",
    0,
    0,
    lambda v: {"timeoutMs": 30_000, "topics": [{"name": "t", "partitionIndexes": [0, 7]}]},
    lambda v: {
        "throttleTimeMs": 5,
        "errorCode": 0,
        "errorMessage": None,
        "topics": [
            {
                "name": "t",
                "partitions": [
                    {
                        "partitionIndex": 7,
                        "replicas": [3, 1, 2],
                        "addingReplicas": [3],
                        "removingReplicas": [2],
                    }
                ],
            }
        ],
    },
    lambda v: ours.ListPartitionReassignmentsRequest(
        all_topics=False, topics=(ours.ReassignmentsOfTopic(name="t", partitions=(0, 7)),), timeout_ms=30_000
    ),
    lambda v: ours.ListPartitionReassignmentsResponse(
        throttle_time_ms=5,
        topics=(
            ours.OngoingTopicReassignment(
                name="t",
                partitions=(
                    ours.OngoingPartitionReassignment(
                        index=7, replicas=(3, 1, 2), adding_replicas=(3,), removing_replicas=(2,)
                    ),
                ),
            ),
        ),
    ),
)
EXAMPLES = (ELECT, ALTER, LIST)


if __name__ == "__main__":
    for one in EXAMPLES:
        for number in range(one.oldest, one.newest + 1):
            for side, values in (("Request", one.request), ("Response", one.response)):
                print(f"{one.name}{side} {number} {json.dumps(of_version(values(number), number))}")
