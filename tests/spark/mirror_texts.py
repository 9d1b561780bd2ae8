"""An origin as a mirror's copies have it in their last header; Spark makes the same text of whole columns."""

from __future__ import annotations

from quorumlog.spark.mirror.origin import Origin


def origin_text(origin: Origin) -> str:
    home = origin.home
    return f"{home.cluster_id}/{home.topic_id}/{home.partition}/{origin.offset}/{origin.copy_id}"
