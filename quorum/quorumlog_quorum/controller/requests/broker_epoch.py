"""Whether a broker's request comes from the process that is registered."""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import BrokerEpoch, NodeId
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import BrokerRegistration


def registered(image: Image, broker_id: NodeId, broker_epoch: BrokerEpoch) -> BrokerRegistration:
    """The registration, if it is of this epoch. Raises BROKER_ID_NOT_REGISTERED or STALE_BROKER_EPOCH."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered")
    if broker.broker_epoch != broker_epoch:
        raise ApiError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {broker_id} says epoch {broker_epoch}, it is registered with {broker.broker_epoch}",
        )
    return broker
