"""Every call of the schema, by its path and by its request type. It loads protobuf and every codec."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.messages.fetch import FetchChunkRequest
from quorumlog.messages.method import Method
from quorumlog.messages.services import METHODS
from quorumlog.rpc.convert.chunk_codec import decode_chunk, encode_chunk
from quorumlog.rpc.convert.codec import Codec
from quorumlog.rpc.convert.services import CODECS
from quorumlog.rpc.transport import ORDERED


class Call(NamedTuple):
    method: Method
    codec: Codec

    @property
    def ordered(self) -> bool:
        """True if requests share one stream and are handled in the order in which they were made."""
        return self.method.client_streaming

    @property
    def has_own_context(self) -> bool:
        """True if a stream's requests belong together, and not to other streams of the same connection and caller."""
        return self.method.request is FetchChunkRequest

    @property
    def is_optional(self) -> bool:
        """True if a caller can do without it, and is told where the peer's software is older."""
        return self.method.request is FetchChunkRequest


def _codec(method: Method) -> Codec:
    made = CODECS[method.request]
    if method.request is FetchChunkRequest:
        return made._replace(encode_response=encode_chunk, decode_response=decode_chunk)
    return made


CALLS: tuple[Call, ...] = tuple(Call(method, _codec(method)) for method in METHODS)
BY_REQUEST: dict[type, Call] = {call.method.request: call for call in CALLS}  # the newer, if there are two
BY_PATH: dict[str, Call] = {call.method.path: call for call in CALLS}

# For peers that do not know the call in BY_REQUEST: the older one, which is not ordered.
OLDER: dict[type, Call] = {call.method.request: call for call in CALLS if call is not BY_REQUEST[call.method.request]}
assert {request for request, call in BY_REQUEST.items() if call.ordered} == ORDERED
