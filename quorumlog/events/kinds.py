"""The kinds of events, each with what it says. A kind's first word is the sort of thing that it is about."""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    # Records of the metadata log, as a node applies them.
    "partition.leader": "another leader or none, by a record",
    "partition.unclean": "a leader that may lack acknowledged records was elected",
    "partition.isr": "a replica left the in-sync replicas, or came back",
    "partition.elr": "the eligible leader replicas changed while no replica is in sync",
    "partition.reassignment": "replicas are being added or removed, or this has ended",
    "broker.registered": "a broker's process registered; it is fenced until it has caught up",
    "broker.fenced": "the controller fenced a broker: it leads nothing and is in no ISR",
    "broker.unfenced": "a broker serves",
    "broker.leaving": "a broker asked for a controlled shutdown",
    "broker.cordoned": "a broker's directories were cordoned or are so no more",
    "broker.directories": "directories of a broker went offline or came online, as the controller knows them",
    "broker.unregistered": "an operator took a broker out of the cluster",
    "topic.created": "a topic was made",
    "topic.partitions": "a topic got more partitions",
    "topic.deleted": "a topic was deleted",
    "config.changed": "a setting was set or removed",
    "access.changed": "a rule, a user or a quota was made, changed or removed",
    "feature.level": "the cluster uses another level of a feature",
    "controller.registered": "a controller's process registered",
    "controller.unregistered": "a controller was taken out of the cluster",
    # What the node has met itself.
    "quorum.leader": "the quorum has another leader or epoch, or none that this node knows",
    "node.started": "the node's process has opened its directories",
    "node.state": "the broker's life went on: it starts, runs, leaves",
    "node.stopping": "the node stops",
    "node.fatal": "the node cannot go on",
    "directory.offline": "a log directory failed; its replicas are not served",
    "directory.online": "a log directory is served again",
    "directory.damaged": "the check in the background found a damaged batch",
    "directory.sound": "that check has found no damage any more",
    "recovery.found": "a log was not whole when it was opened",
    "loop.stall": "the node did nothing else for a while",
    "disk.slow": "a call to a disk took long",
    "tls.reloaded": "new connections get another certificate",
    "tls.trouble": "a changed certificate was not taken",
    "tls.expiry": "a certificate expires soon or has expired",
    "login.failed": "many logins failed",
    "coordinator.loaded": "the coordinator of a partition of groups or transactions serves",
    "coordinator.failed": "such a partition cannot be read",
    "group.rebalance": "a group began a rebalance, or ended one",
    "quota.throttled": "clients under a quota are held back",
    "quota.released": "clients under a quota are held back no more",
}
