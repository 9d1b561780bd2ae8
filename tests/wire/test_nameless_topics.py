"""A topic that was asked for by an id that nobody knows: where the version has a null for its name, it is null."""

from __future__ import annotations

import pytest

from quorumlog.messages import cluster
from quorumlog.wire.convert.cluster import write_delete_topics_response, write_metadata_response

ID, UNKNOWN_ID = bytes(range(16)), 100


@pytest.mark.parametrize(("version", "name"), [(10, ""), (11, ""), (12, None), (13, None)])
def test_metadata(version: int, name: str | None) -> None:
    topics = (
        cluster.TopicMetadata(name="", topic_id=ID, error_code=UNKNOWN_ID),
        cluster.TopicMetadata(name="t", topic_id=ID),
        cluster.TopicMetadata(name="", error_code=17),
    )
    response = cluster.MetadataResponse(topics=topics)
    values = write_metadata_response(response, cluster.MetadataRequest(all_topics=True), version)
    assert [(topic["name"], topic["topic_id"]) for topic in values["topics"]] == [
        (name, ID),
        ("t", ID),
        ("", bytes(16)),
    ]


@pytest.mark.parametrize(("version", "name"), [(5, ""), (6, None)])
def test_delete_topics(version: int, name: str | None) -> None:
    results = (
        cluster.DeleteTopicResult(name="", topic_id=ID, error_code=UNKNOWN_ID),
        cluster.DeleteTopicResult(name="t", topic_id=ID),
    )
    request = cluster.DeleteTopicsRequest(topics=(cluster.TopicQuery(topic_id=ID),), timeout_ms=1)
    values = write_delete_topics_response(cluster.DeleteTopicsResponse(topics=results), request, version)
    assert [(result["name"], result["error_code"]) for result in values["responses"]] == [(name, UNKNOWN_ID), ("t", 0)]
