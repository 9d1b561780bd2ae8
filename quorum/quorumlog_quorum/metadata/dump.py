"""Records and images as plain dictionaries, for people and for JSON.

Field names are those of the schema, and identifiers look as in Kafka's tools. A record begins with its type's name.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from quorumlog.ids import UUID_BYTES, format_uuid
from quorumlog.messages.metadata_records import MetadataRecord, SnapshotStateRecord, UserScramCredentialRecord
from quorumlog_quorum.metadata.access import sorted_access
from quorumlog_quorum.metadata.image import Image, TopicImage, finalized_levels

Plain = dict[str, Any]
HIDDEN = dict.fromkeys(("salt", "stored_key", "server_key"), "(hidden)")  # whoever has them can guess the password


def describe_record(record: MetadataRecord) -> Plain:
    """{"type": "TopicRecord", "name": ..., ...}; a field that is absent from the record is absent here."""
    described = {"type": type(record).__name__, **_fields(record)}
    if isinstance(record, UserScramCredentialRecord):
        described |= HIDDEN
    if isinstance(record, SnapshotStateRecord):
        described["state_hash"] = record.state_hash.hex()  # as of an image; it has the length of an id
    return described


def describe_image(image: Image) -> Plain:
    """The whole image, each list in the order of its keys."""
    return {
        "offset": image.offset,
        "epoch": image.epoch,
        "state_hash": image.state_hash_bytes.hex(),
        "brokers": [_fields(broker) for broker in image.sorted_brokers()],
        "topics": [_topic(topic) for topic in image.sorted_topics()],
        "configs": [
            {"resource_type": kind, "resource_name": name, "values": dict(sorted(image.configs[kind, name].items()))}
            for kind, name in sorted(image.configs)
        ],
        "features": finalized_levels(image),
        "controllers": [_fields(controller) for controller in image.sorted_controllers()],
        "next_producer_id": image.next_producer_id,
        "cluster_incarnation": str(image.incarnation),
        "access": [describe_record(entry) for entry in sorted_access(image.access)],
        "deleted_topics": [
            {"topic_id": format_uuid(topic_id), **_fields(deleted)} for topic_id, deleted in image.sorted_deleted()
        ],
    }


def _topic(topic: TopicImage) -> Plain:
    partitions = [{"partition": index, **_fields(partition)} for index, partition in topic.sorted_partitions()]
    return {"name": topic.name, "topic_id": format_uuid(topic.id), "partitions": partitions}


def _fields(value: Any) -> Plain:
    pairs = ((field.name, getattr(value, field.name)) for field in fields(value))
    return {name: _plain(part) for name, part in pairs if part is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return format_uuid(value) if len(value) == UUID_BYTES else value.hex()
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return _fields(value) if is_dataclass(value) else value
