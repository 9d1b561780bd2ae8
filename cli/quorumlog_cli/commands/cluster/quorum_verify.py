"""`quorumlog quorum verify`: whether all brokers hold the same metadata."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.connecting.connect import ConfigOption, ProfileOption, ServersOption, connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.output import Format, OutputOption

if TYPE_CHECKING:
    from quorumlog.ids import NodeId, Offset

    Images = Mapping[NodeId, Mapping[Offset, bytes]]

POLL_S = 0.2


def verify(
    timeout_s: Annotated[
        float, typer.Option("--timeout", help="Seconds to wait until all brokers hold images of one offset.")
    ] = 10.0,
    servers: ServersOption = None,
    profile: ProfileOption = None,
    options: ConfigOption = None,
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Compare the metadata of all brokers: the hash of the image at each offset that they have in common.

    Exit code 0: the hashes agree. 4: they differ, and brokers act on different metadata. 10: no offset in common yet.
    """
    output.use(output_format)
    deadline = time.monotonic() + timeout_s
    with connected(find_target(servers, profile, options)) as cluster:
        while not (common := offsets_in_common(images := cluster.admin.recent_images())):
            if time.monotonic() >= deadline:
                raise CliError(
                    Exit.TIMED_OUT,
                    f"after {timeout_s:g} s the brokers hold no metadata image of the same offset: {_ends(images)}",
                    "one of them is far behind; quorumlog quorum status shows its lag",
                )
            time.sleep(POLL_S)
    _show(document(images, common))


def offsets_in_common(images: Images) -> list[Offset]:
    """Ascending. Empty if there is no broker, or one without an image."""
    counts = Counter(offset for held in images.values() for offset in held)
    return sorted(offset for offset, count in counts.items() if count == len(images))


def document(images: Images, common: list[Offset]) -> dict[str, Any]:
    """What was compared. offset: the first at which brokers differ; the last in common if they agree."""
    differing = [at for at in common if len({held[at] for held in images.values()}) > 1]
    offset = differing[0] if differing else common[-1]
    return {
        "agree": not differing,
        "offset": offset,
        "compared": len(common),
        "brokers": [
            {"node_id": node_id, "newest": max(held), "state_hash": held[offset].hex()}
            for node_id, held in sorted(images.items())
        ],
    }


def _show(found: dict[str, Any]) -> None:
    output.show(
        ("NODE", "NEWEST IMAGE", f"HASH AT {found['offset']}"),
        [[broker["node_id"], broker["newest"], broker["state_hash"]] for broker in found["brokers"]],
        found,
    )
    if not found["agree"]:
        raise CliError(
            Exit.DATA_INVALID,
            f"the brokers' metadata differs from offset {found['offset']} on",
            "keep all data; compare quorumlog metadata dump --image --end OFFSET of each node; stop a node that "
            "differs from the majority, set its metadata log aside, and start it again",
        )
    output.say(f"all {len(found['brokers'])} brokers agree at {found['compared']} offsets up to {found['offset']}")


def _ends(images: Images) -> str:
    return ", ".join(f"node {node_id} {max(held, default='none')}" for node_id, held in sorted(images.items()))
