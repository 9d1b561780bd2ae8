"""`meta.properties`: the cluster and node that a log directory belongs to, and its own id (KIP-858).

Written when the directory is formatted, and again only when the cluster is recovered after it has lost its majority:
`cluster.incarnation`, a key that Kafka ignores, is added then. A directory without it is of incarnation 0.
 The directory id tells the controller on which disk a replica lies. Two
directories with one id (a copied disk) must never be used at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation, parse_incarnation
from quorumlog.ids import RESERVED_UUIDS, NodeId, Uuid, format_uuid, parse_uuid
from quorumlog_storage.files.properties import BadProperties, parse_properties, render_properties

META_PROPERTIES = "meta.properties"
VERSION_OF_ZOOKEEPER = "0"  # as Kafka wrote it before KRaft
VERSION = "1"
_INCARNATION = "cluster.incarnation"


class WrongDirectory(Exception):
    """A log directory that this node must not use."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The content of the file. cluster_id: as text, like Kafka's."""

    cluster_id: str
    node_id: NodeId
    directory_id: Uuid
    incarnation: ClusterIncarnation = FIRST

    def render(self, comment: str = "") -> bytes:
        """comment: for people, such as the date of the format."""
        return render_properties(
            {
                "cluster.id": self.cluster_id,
                "directory.id": format_uuid(self.directory_id),
                "node.id": str(self.node_id),
                "version": VERSION,
                **({} if self.incarnation.is_first else {_INCARNATION: str(self.incarnation)}),
            },
            comment,
        )

    @classmethod
    def parse(cls, path: str, content: bytes) -> MetaProperties:
        """Raises BadProperties. Unknown keys are ignored; version 0 (ZooKeeper's time) is refused."""
        found = parse_properties(path, content)
        if found.get("version") != VERSION:
            raise BadProperties(path, 1, f"version is {found.get('version')!r}, this node reads {VERSION!r}")
        for key in ("cluster.id", "node.id", "directory.id"):
            if not found.get(key):
                raise BadProperties(path, 1, f"{key} is missing")
        try:
            directory_id = parse_uuid(found["directory.id"])
            incarnation = parse_incarnation(found.get(_INCARNATION, "0"))
        except ValueError as error:
            raise BadProperties(path, 1, f"directory.id or {_INCARNATION} is {error}") from error
        if int.from_bytes(directory_id) < RESERVED_UUIDS:
            raise BadProperties(path, 1, f"directory.id is {found['directory.id']}, which is reserved")
        node_id = found["node.id"]
        if not (node_id.isascii() and node_id.isdigit() and int(node_id[:11]) < 2**31):
            raise BadProperties(path, 1, f"node.id is {node_id[:20]!r}, not a number from 0 to 2147483647")
        return cls(found["cluster.id"], int(node_id), directory_id, incarnation)


def check_directories(found: Sequence[tuple[str, MetaProperties]], node_id: NodeId, cluster_id: str | None) -> None:
    """All (path, properties) of one node belong together. cluster_id: the one expected, None for "all the same".

    Raises WrongDirectory, which names the directory, what is wrong with it and the way out.
    """
    seen: dict[Uuid, str] = {}
    for path, meta in found:
        expected = cluster_id if cluster_id is not None else found[0][1].cluster_id
        if meta.cluster_id != expected:
            raise WrongDirectory(
                f"{path} belongs to cluster {meta.cluster_id}, not {expected}; "
                "take it out of log.dirs, or format an empty directory for this cluster"
            )
        if meta.node_id != node_id:
            raise WrongDirectory(
                f"{path} belongs to node {meta.node_id}, this is node {node_id}; "
                "correct node.id, or take the directory out of log.dirs"
            )
        if meta.incarnation != found[0][1].incarnation:
            raise WrongDirectory(
                f"{path} is of cluster incarnation {meta.incarnation}, {found[0][0]} of {found[0][1].incarnation}; if "
                "a recovery of this node was interrupted, run it again; else take the directory out of log.dirs"
            )
        if meta.directory_id in seen:
            raise WrongDirectory(
                f"{path} and {seen[meta.directory_id]} have one directory id, {format_uuid(meta.directory_id)}: "
                "one is a copy of the other; remove the copy"
            )
        seen[meta.directory_id] = path
