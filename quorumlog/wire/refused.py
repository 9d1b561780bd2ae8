"""JoinGroup, announced only to be refused: there are no consumer groups yet.

If JoinGroup is not announced, some clients do not fail: aiokafka retries for ever, librdkafka logs a missing feature.
If it is refused, every client of the matrix in docs/kafka-clients.md reports the error to its application.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.wire.codec import Frame, encode_values
from quorumlog.wire.cursor import Cursor
from quorumlog.wire.entities import request_shape, response_shape
from quorumlog.wire.header import RequestHeader, read_rest

JOIN_GROUP_KEY = 11
REFUSED_VERSIONS = {JOIN_GROUP_KEY: (0, 9)}
_SCHEMA = "join_group"


def refuse(cursor: Cursor, fixed: RequestHeader) -> Frame:
    """Raises Malformed."""
    request = request_shape(_SCHEMA, fixed.version)
    read_rest(cursor, fixed, request.flexible)
    member_id = request.read(cursor)["member_id"]
    values = {"error_code": ErrorCode.UNSUPPORTED_VERSION, "generation_id": -1, "member_id": member_id}
    empty = {"leader": "", "protocol_name": "", "members": []}
    return encode_values(fixed, response_shape(_SCHEMA, fixed.version), {**values, **empty})
