"""What can be told of a request's frame before it is read."""

from __future__ import annotations

from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.produce import ProduceRequest
from quorumlog.rpc.transport import ORDERED
from quorumlog.wire.api import Api
from quorumlog.wire.apis import BY_KEY
from quorumlog.wire.header import FIXED

SLICED_BYTES = 32 * 1024  # from here on a request is read in slices: those of about 2,000 partitions
BY_STEPS = (ProduceRequest, FetchRequest)  # their handlers await nothing but futures


def is_ordered(frame: memoryview) -> bool:
    """By the API key alone. A frame that is too short to have one is begun, and refused, by itself."""
    if len(frame) < FIXED.size:
        return False
    api = BY_KEY.get(int.from_bytes(frame[:2], "big"))
    return api is not None and api.method.request in ORDERED


def is_read_in_slices(frame: memoryview, api: Api) -> bool:
    """Records are not looked at, so a large frame of theirs is read fast."""
    return len(frame) >= SLICED_BYTES and api.method.request not in BY_STEPS
