"""Every call that the schema has, by its name on the wire and by the type of its request."""

from __future__ import annotations

from typing import Any, NamedTuple

from quorumlog.messages.method import Method
from quorumlog.messages.produce import ProduceRequest
from quorumlog.messages.services import METHODS
from quorumlog.rpc.convert.codec import Codec
from quorumlog.rpc.convert.services import CODECS
from quorumlog.rpc.transport import ORDERED

NO_ACKS = 0  # of a ProduceRequest: the producer waits for nothing


class Call(NamedTuple):
    method: Method
    codec: Codec

    @property
    def ordered(self) -> bool:
        """True where requests share one stream and are handled in the order in which they were made."""
        return self.method.request in ORDERED


CALLS: tuple[Call, ...] = tuple(Call(method, CODECS[method.request]) for method in METHODS)
BY_REQUEST: dict[type, Call] = {call.method.request: call for call in CALLS}
BY_PATH: dict[str, Call] = {call.method.path: call for call in CALLS}


def expects_answer(request: Any) -> bool:
    """False for acks=0 only. Both sides of a stream count by this rule, so it looks at nothing but the request."""
    return not (isinstance(request, ProduceRequest) and request.acks == NO_ACKS)
