"""Whether a log directory may get a marker of a clean shutdown, once its logs are closed. Pure.

Kafka's rule (LogManager.shutdown): it was clean at the start, or all its logs were loaded since. A clean start
trusts every log, so none may be left that nobody has looked at.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from quorumlog_broker.logdirs.hosted_replica import HostedReplica
from quorumlog_broker.logdirs.log_directory import DirectoryQueue
from quorumlog_broker.partition.key import PartitionKey


def left_in_order(
    queue: DirectoryQueue, held: Sequence[HostedReplica], found: Set[PartitionKey], *, all_known: bool
) -> bool:
    """held: its replicas. found: what it held at the start and still holds.

    all_known: it was listed, and holds nothing that `found` does not name.
    """
    if not queue.directory.life.is_online or any(replica.core.failed for replica in held):
        return False
    if queue.directory.partitions.clean:
        return True
    return all_known and found <= {replica.key for replica in held if replica.partition_log is not None}
