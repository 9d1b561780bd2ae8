"""How far streaming queries are, for tools that show the lag of groups: exactly, also after the last batch of a run.

The option commitGroup does this from the source, to which Spark tells a batch's end only with the next batch. This
listener runs in the script's own process and hears of each batch when it is finished.
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from quorumlog.client.blocking_admin import Admin
from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.client.security.names import canonical
from quorumlog.client.security.sources import with_secrets
from quorumlog.spark.read.cluster import commit_offsets
from quorumlog.spark.stream.offset import StreamOffset, stream_offset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def track(spark: SparkSession, group_id: str, **client: Any) -> GroupListener:
    """Commit for this group what the session's queries have read of a cluster, until the listener is closed.

    client: options of an admin client, such as bootstrap_servers; a secret may be named by where it is. Of several
    queries over the same partitions the last one to finish a batch counts: give each query a session, or a group, of
    its own.
    """
    options = {canonical(name): value for name, value in client.items()}
    listener = GroupListener(group_id, Admin(with_secrets(options)))
    spark.streams.addListener(listener)
    return listener


class GroupListener(StreamingQueryListener):
    """Errors become warnings: a query does not fail because nobody can see how far it is."""

    def __init__(self, group_id: str, admin: Admin) -> None:
        self._group_id = group_id
        self._admin = admin
        self._cluster_id = admin.describe_cluster().cluster_id

    def close(self) -> None:
        """After `spark.streams.removeListener`."""
        self._admin.close()

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None: ...

    def onQueryProgress(self, event: Any) -> None:
        for source in event.progress.sources:
            position = self._position(source.endOffset)
            if position is not None:
                self._commit(position)

    def _position(self, text: str | None) -> StreamOffset | None:
        """None for a source that is none of ours, or of another cluster."""
        try:
            found = json.loads(text or "null")
            position = stream_offset(found) if isinstance(found, dict) and "v" in found else None
        except (ValueError, ConfigError):
            return None
        return position if position is not None and position.cluster_id == self._cluster_id else None

    def _commit(self, position: StreamOffset) -> None:
        try:
            commit_offsets(self._admin, self._group_id, position.offsets)
        except QuorumlogError as error:
            warnings.warn(f"group {self._group_id!r} does not show how far the query is: {error}", stacklevel=2)
