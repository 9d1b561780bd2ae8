"""The voters that a new cluster begins with, as `storage format` writes them (KIP-853).

They stand in the bootstrap checkpoint, `00000000000000000000-0000000000.checkpoint`, beside the empty metadata log: a
snapshot of no records, with KRaftVersion 1 and Voters. The first leader copies both into the log. A cluster with
`controller.quorum.voters` has none: its set is static.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from quorumlog.ids import RESERVED_UUIDS, NodeId, Uuid, format_uuid, parse_uuid
from quorumlog.records.control import Voter, VoterEndpoint, Voters
from quorumlog.rpc.transport import Address
from quorumlog.topic_name import METADATA_TOPIC
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.listeners import parse_address
from quorumlog_server.config.properties import ConfigError
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.files.names import partition_directory
from quorumlog_storage.rules.fetch_rule import SnapshotId
from quorumlog_storage.segment.log_file import holds_records

BOOTSTRAP = SnapshotId(0, 0)
_KRAFT_VERSION = 1
_OPTIONS = "--standalone, --initial-controllers or --no-initial-controllers"
_NODE = re.compile(r"([0-9]{1,9})@(.*):([A-Za-z0-9_-]{22})", re.ASCII)


class FormatRefused(Exception):
    """Nothing was formatted. The message is for the operator."""


@dataclass(frozen=True, slots=True)
class InitialController:
    """address: of its internal listener. directory_id: of the log directory that will hold its metadata log."""

    node_id: NodeId
    address: Address
    directory_id: Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstVoters:
    """standalone: this node alone. initial: this node and others. later: none; it joins a quorum that exists.

    With none of them the set is static.
    """

    standalone: bool = False
    initial: tuple[InitialController, ...] = ()
    later: bool = False

    @property
    def are_static(self) -> bool:
        return not (self.standalone or self.initial or self.later)


STATIC = FirstVoters()


def parse_initial_controllers(text: str) -> tuple[InitialController, ...]:
    """ID@HOST:PORT:DIRECTORY_ID each, separated by commas; sorted by id. Raises FormatRefused."""
    found: list[InitialController] = []
    for part in text.split(","):
        match = _NODE.fullmatch(part.strip())
        if match is None:
            raise FormatRefused(f"--initial-controllers: {part!r} is not ID@HOST:PORT:DIRECTORY_ID")
        try:
            address, directory_id = parse_address("--initial-controllers", match[2]), parse_uuid(match[3])
        except (ConfigError, ValueError) as error:
            raise FormatRefused(f"--initial-controllers: {part!r}: {error}") from error
        found.append(InitialController(int(match[1]), address, directory_id))
    _check_list(found)
    return tuple(sorted(found, key=lambda controller: controller.node_id))


def _check_list(found: Sequence[InitialController]) -> None:
    for what, values in (
        ("node id", [controller.node_id for controller in found]),
        ("address", [str(controller.address) for controller in found]),
        ("directory id", [format_uuid(controller.directory_id) for controller in found]),
    ):
        for value in values:
            if values.count(value) > 1:  # type: ignore[arg-type]  # a list of one type each
                raise FormatRefused(f"--initial-controllers: {what} {value} is given twice")
    for controller in found:
        if int.from_bytes(controller.directory_id) < RESERVED_UUIDS:
            text = format_uuid(controller.directory_id)
            raise FormatRefused(f"--initial-controllers: directory id {text} is reserved; see: storage random-uuid")
        if controller.address.port == 0:
            raise FormatRefused(f"--initial-controllers: node {controller.node_id} has port 0; set one")


def check_first_voters(config: NodeConfig, first: FirstVoters) -> None:
    """Whether they fit the node's configuration. Raises FormatRefused."""
    name = f"node {config.node_id}"
    if config.voters:
        if not first.are_static:
            raise FormatRefused(
                f"controller.quorum.voters is set, so the voters of {name} are static: leave out {_OPTIONS}"
            )
        return
    if not config.is_controller:
        if first.standalone or first.initial:
            raise FormatRefused(
                f"{name} is a broker alone (process.roles), so it cannot be a voter: leave out {_OPTIONS}"
            )
        return
    if first.are_static:
        raise FormatRefused(f"{name} is a controller, and controller.quorum.voters is not set: say one of {_OPTIONS}")
    if config.internal_listener.address.port == 0 and not first.later:
        raise FormatRefused(f"{name}: {config.internal_listener.name} has port 0, but other nodes must know its port")
    if first.initial:
        _own(config, first.initial)


def _own(config: NodeConfig, initial: Sequence[InitialController]) -> InitialController:
    for controller in initial:
        if controller.node_id == config.node_id:
            if controller.address != _address(config):
                text = f"--initial-controllers says {controller.address}, its configuration {_address(config)}"
                raise FormatRefused(f"node {config.node_id}: {text}")
            return controller
    ids = [controller.node_id for controller in initial]
    raise FormatRefused(f"node {config.node_id} is not among --initial-controllers {ids}: say --no-initial-controllers")


def directory_id_of(config: NodeConfig, first: FirstVoters) -> Uuid | None:
    """What the node's metadata directory must be named; None: any id."""
    return _own(config, first.initial).directory_id if first.initial else None


def write_first_voters(disk: Disk, config: NodeConfig, first: FirstVoters, directory_id: Uuid) -> None:
    """Write the bootstrap checkpoint, if there is one. directory_id: of the metadata directory, which exists.

    Durable when it returns. Raises FormatRefused, DiskError.
    """
    path = f"{config.metadata_log_dir}/{partition_directory(METADATA_TOPIC, 0)}"
    if first.are_static:
        return
    if holds_records(disk, path):
        raise FormatRefused(f"{path} holds a metadata log, though its directory is not formatted; move it away first")
    if first.later or not config.is_controller:
        return
    from quorumlog_quorum.snapshots import (  # a static set starts without the quorum's modules
        SnapshotHeading,
        write_snapshot,
    )

    disk.make_directory(path)
    disk.sync_directory(config.metadata_log_dir)
    heading = SnapshotHeading(
        id=BOOTSTRAP,
        last_contained_timestamp_ms=0,
        kraft_version=_KRAFT_VERSION,
        voters=Voters(tuple(_voters(config, first, directory_id))),
    )
    write_snapshot(disk, path, heading, ())


def _voters(config: NodeConfig, first: FirstVoters, directory_id: Uuid) -> list[Voter]:
    own = InitialController(config.node_id, _address(config), directory_id)
    return [
        Voter(
            controller.node_id,
            controller.directory_id,
            (VoterEndpoint(config.internal_listener.name, controller.address.host, controller.address.port),),
            0,
            _KRAFT_VERSION,
        )
        for controller in first.initial or (own,)
    ]


def _address(config: NodeConfig) -> Address:
    return config.advertised[config.internal_listener.name]
