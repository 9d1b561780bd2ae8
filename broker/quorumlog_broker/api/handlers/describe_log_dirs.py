"""DescribeLogDirs: what lies in this broker's log directories, and how much space is left.

Before the first metadata no log is open, and an answer would say that nothing lies there: it is refused as others are.
"""

from __future__ import annotations

from dataclasses import replace

from quorumlog.messages.admin import DescribeLogDirsRequest, DescribeLogDirsResponse, LogDirDescription, LogDirTopic
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services


async def handle_describe_log_dirs(
    services: Services, _context: Context, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    check_topic_count(request.topics, services.limits)
    services.caught_up_image()
    directories = await services.directory_report.describe()
    if not request.all_topics:
        asked = {topic.name: topic.partitions for topic in request.topics}
        directories = [_only(directory, asked) for directory in directories]
    return DescribeLogDirsResponse(directories=tuple(directories))


def _only(directory: LogDirDescription, asked: dict[str, tuple[int, ...]]) -> LogDirDescription:
    topics = [
        LogDirTopic(
            name=topic.name,
            partitions=tuple(partition for partition in topic.partitions if partition.index in asked[topic.name]),
        )
        for topic in directory.topics
        if topic.name in asked
    ]
    return replace(directory, topics=tuple(topic for topic in topics if topic.partitions))
