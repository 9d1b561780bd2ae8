"""The calls of the consumer protocol (KIP-848)."""

from __future__ import annotations

from quorumlog.messages import groups
from tests.wire.example import KAFKAS_ID, TOPIC_ID, Example, since

OWNED = [{"topicId": KAFKAS_ID, "partitions": [0, 3]}]
OUR_OWNED = groups.MemberTopicPartitions(
    topic_partitions=(groups.TopicIdPartitions(topic_id=TOPIC_ID, partitions=(0, 3)),)
)

CONSUMER_HEARTBEAT = Example(
    68,
    "ConsumerGroupHeartbeat",
    0,
    1,
    lambda v: {
        "groupId": "g",
        "memberId": "m1",
        "memberEpoch": 0,
        "instanceId": "i1",
        "rackId": "r1",
        "rebalanceTimeoutMs": 300_000,
        "subscribedTopicNames": ["foo", "bar"],
        "subscribedTopicRegex@1": "fo.*",
        "serverAssignor": "range",
        "topicPartitions": OWNED,
    },
    lambda v: {
        "throttleTimeMs": 7,
        "errorCode": 0,
        "errorMessage": None,
        "memberId": "m1",
        "memberEpoch": 3,
        "heartbeatIntervalMs": 5_000,
        "assignment": {"topicPartitions": OWNED},
    },
    lambda v: groups.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m1",
        member_epoch=0,
        group_instance_id="i1",
        rack_id="r1",
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=groups.SubscribedTopicNames(names=("foo", "bar")),
        subscribed_topic_regex=since(v, 1, "fo.*", None),
        server_assignor="range",
        topic_partitions=OUR_OWNED,
        chooses_member_id=v >= 1,
    ),
    lambda v: groups.ConsumerGroupHeartbeatResponse(
        throttle_time_ms=7,
        member_id="m1",
        member_epoch=3,
        heartbeat_interval_ms=5_000,
        assignment=OUR_OWNED,
    ),
)
CONSUMER_DESCRIBE = Example(
    69,
    "ConsumerGroupDescribe",
    0,
    1,
    lambda v: {"groupIds": ["g", "h"], "includeAuthorizedOperations": True},
    lambda v: {
        "throttleTimeMs": 7,
        "groups": [
            {
                "errorCode": 0,
                "errorMessage": None,
                "groupId": "g",
                "groupState": "Stable",
                "groupEpoch": 4,
                "assignmentEpoch": 3,
                "assignorName": "uniform",
                "members": [
                    {
                        "memberId": "m1",
                        "instanceId": "i1",
                        "rackId": None,
                        "memberEpoch": 2,
                        "clientId": "c",
                        "clientHost": "/127.0.0.1",
                        "subscribedTopicNames": ["foo"],
                        "subscribedTopicRegex": "fo.*",
                        "assignment": {"topicPartitions": [{**OWNED[0], "topicName": "foo"}]},
                        "targetAssignment": {"topicPartitions": []},
                        "memberType@1": 1,
                    }
                ],
                "authorizedOperations": 328,
            },
            {
                "errorCode": 69,
                "errorMessage": "no such group",
                "groupId": "h",
                "groupState": "",
                "groupEpoch": 0,
                "assignmentEpoch": 0,
                "assignorName": "",
                "members": [],
                "authorizedOperations": -(2**31),
            },
        ],
    },
    lambda v: groups.ConsumerGroupDescribeRequest(group_ids=("g", "h"), include_authorized_operations=True),
    lambda v: groups.ConsumerGroupDescribeResponse(
        throttle_time_ms=7,
        groups=(
            groups.DescribedConsumerGroup(
                group_id="g",
                group_state="Stable",
                group_epoch=4,
                assignment_epoch=3,
                assignor_name="uniform",
                members=(
                    groups.DescribedConsumerMember(
                        member_id="m1",
                        group_instance_id="i1",
                        member_epoch=2,
                        client_id="c",
                        client_host="/127.0.0.1",
                        subscribed_topic_names=("foo",),
                        subscribed_topic_regex="fo.*",
                        assignment=(groups.AssignedTopic(topic_id=TOPIC_ID, topic_name="foo", partitions=(0, 3)),),
                        member_type=1,
                    ),
                ),
                authorized_operations=328,
            ),
            groups.DescribedConsumerGroup(error_code=69, error_message="no such group", group_id="h"),
        ),
    ),
)
