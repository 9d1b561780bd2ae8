"""The topic or partition that a command names, or an error that says what is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorumlog_cli.terminal.errors import CliError, Exit

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster
    from quorumlog.messages.cluster import TopicMetadata


def topic_of(cluster: Cluster, topic: str, partition: int | None = None) -> TopicMetadata:
    """Looked up at once, where other calls would wait for a topic to come. partition: must be there, too.

    Raises CliError(NOT_FOUND).
    """
    from quorumlog.client.errors import RequestFailed
    from quorumlog.errors import ErrorCode

    hint = "quorumlog topic list shows what there is"
    try:
        found = cluster.admin.describe_topic(topic)
    except RequestFailed as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise CliError(Exit.NOT_FOUND, f"there is no topic {topic!r}", hint) from error
    if partition is not None and all(one.index != partition for one in found.partitions):
        raise CliError(Exit.NOT_FOUND, f"there is no partition {partition} of topic {topic!r}", hint)
    return found
