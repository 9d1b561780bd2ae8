"""What was changed of a broker's own settings while it runs: for this broker, else for all brokers (KIP-226)."""

from __future__ import annotations

from quorumlog.configs.live import IN_FORCE
from quorumlog.configs.topic import RETENTION_PAUSED
from quorumlog.errors import ApiError
from quorumlog.ids import NodeId
from quorumlog.settings.config_key import parse_text
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, Image


def text_set(image: Image, node_id: NodeId, name: str) -> str | None:
    """None: it was not changed, and that of the broker's file counts."""
    layers = (image.configs.get((BROKER_RESOURCE, broker)) for broker in (str(node_id), CLUSTER_DEFAULT))
    return next((layer[name] for layer in layers if layer and name in layer), None)


def rate_set(image: Image, node_id: NodeId, name: str) -> int | None:
    text = text_set(image, node_id, name)
    return None if text is None else int(text)


def own_text(image: Image, node_id: NodeId, name: str, in_file: str) -> str:
    """`own_setting` of a list, as its text."""
    found = _understood(image, node_id, name)
    return in_file if found is None else found[0]


def own_setting(image: Image, node_id: NodeId, name: str, in_file: int) -> int:
    """name: of IN_FORCE. What is not understood is ignored: a newer controller may allow it."""
    found = _understood(image, node_id, name)
    return in_file if found is None else int(found[1])


def _understood(image: Image, node_id: NodeId, name: str) -> tuple[str, float] | None:
    """What was set, as its text and its number. None: nothing was, or nothing that this broker understands."""
    text = text_set(image, node_id, name)
    try:
        return None if text is None else (text, parse_text(IN_FORCE[name], text))
    except ApiError:
        return None


def is_all_kept(image: Image, node_id: NodeId) -> bool:
    """Nothing expires here: `retention.paused` is on for all brokers, as a restore leaves it, or for this one."""
    return text_set(image, node_id, RETENTION_PAUSED) == "true"
