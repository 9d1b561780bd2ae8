"""UnregisterBroker: the cluster forgets a broker that is gone for good. Sources: KIP-631, KIP-966.

- The broker leaves every ISR and ELR first, then its registration is removed: each prefix of the records is sound.
- A running broker may be unregistered, as in Kafka. Its next heartbeat learns that, and it registers again, fenced
  until it has caught up: an operator who wants it gone stops it first.
- The broker stays in the replicas of its partitions. They are under-replicated until a reassignment replaces it there,
  or a broker with its id comes back.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.brokers import UnregisterBrokerRequest, UnregisterBrokerResponse
from quorumlog.messages.metadata_records import UnregisterBrokerRecord
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.fencing import leave_for_good
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.requests.broker_epoch import registered
from quorumlog_quorum.metadata.registration import BrokerRegistration


def unregister_broker(draft: Draft, request: UnregisterBrokerRequest) -> Sliced[UnregisterBrokerResponse]:
    """Raises ApiError: BROKER_ID_NOT_REGISTERED; STALE_BROKER_EPOCH if another registration was meant."""
    broker = _meant(draft, request)
    yield from leave_for_good(draft, broker.broker_id)
    draft.add(UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch))
    draft.state.sessions.forget(broker.broker_id)
    draft.state.announced.brokers.pop(broker.broker_id, None)
    return UnregisterBrokerResponse()


def _meant(draft: Draft, request: UnregisterBrokerRequest) -> BrokerRegistration:
    if request.broker_epoch >= 0:
        return registered(draft.image, request.broker_id, request.broker_epoch)
    broker = draft.image.brokers.get(request.broker_id)
    if broker is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {request.broker_id} is not registered")
    return broker
