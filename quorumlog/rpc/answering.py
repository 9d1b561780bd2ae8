"""What is known of a call's answer without its codec: whether there is one, and what it says of an error.

Both wires need this; protobuf is loaded by the one that needs it (calls.py).
"""

from __future__ import annotations

from typing import Any

from quorumlog.errors import ApiError
from quorumlog.messages.method import Method
from quorumlog.messages.produce import ProduceRequest

NO_ACKS = 0  # ProduceRequest.acks of a producer that waits for no answer


def expects_answer(request: Any) -> bool:
    """False for acks=0 only. Both ends of a stream count answers by this rule, so only the request may decide."""
    return not (isinstance(request, ProduceRequest) and request.acks == NO_ACKS)


def failure(method: Method, error: ApiError) -> Any:
    """The error as a response of the method's type."""
    return method.response(error_code=int(error.code), error_message=error.message)
