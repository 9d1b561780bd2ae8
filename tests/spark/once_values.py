"""What was written exactly once, as readers of committed records see it, and what is still open."""

from __future__ import annotations

from collections import Counter

from quorumlog.testing import LocalCluster


def committed(cluster: LocalCluster, topic: str) -> Counter[int]:
    """Values that are numbers, and how often each is there."""
    found = cluster.client.consumer(topic, start="earliest", stop="latest", isolation_level="read_committed")
    return Counter(int(record.value or b"-1") for record in found)


def are_once(cluster: LocalCluster, name: str, rows: int) -> bool:
    """Both topics of `once_places.write_twice` have the numbers below `rows`, and no transaction is open."""
    listed = cluster.client.admin.list_transactions(states=["Ongoing"])
    want = Counter(range(rows))
    return not listed and all(committed(cluster, f"{name}-{kind}") == want for kind in ("batch", "stream"))
