"""A client's request on its way from a broker to the controller, and the answer on its way back (KIP-590).

The proof of an internal call covers the whole message, so nobody between two nodes can change for whom it is. What a
client may not ask itself is not passed on for it, and no client is passed on as a node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.controller import EnvelopeRequest, EnvelopeResponse
from quorumlog.messages.decode_error import DecodeError
from quorumlog.messages.method import Method
from quorumlog.metadata_end import NOT_KNOWN, tell
from quorumlog.proof.peer import Peer
from quorumlog.rpc.answering import failure
from quorumlog.rpc.calls import BY_PATH, BY_REQUEST
from quorumlog.rpc.transport import Context, Listener
from quorumlog.security.principal import NODE, Principal
from quorumlog.security.required.nodes_only import NODES_ONLY


@dataclass(slots=True)
class Behalf:
    """`transport.Context` of a request that a broker passes on. listener: by which it came here. private: as of the
    call between the nodes."""

    listener: Listener
    principal: Principal
    client_host: str
    client_id: str
    private: bool
    on_closed: Callable[[Callable[[], None]], None]
    peer: Peer | None = None
    request_id: str = ""  # the broker that was asked has told of it
    metadata_end: int = NOT_KNOWN  # of what the request has written


def seal(request: Any, client: Context) -> EnvelopeRequest:
    call = BY_REQUEST[type(request)]
    return EnvelopeRequest(
        principal_type=client.principal.type,
        principal_name=client.principal.name,
        client_host=client.client_host,
        client_id=client.client_id,
        method=call.method.path,
        request=call.codec.encode_request(request),
    )


def read_envelope(context: Context, envelope: EnvelopeRequest) -> tuple[Behalf, Method, Any]:
    """For whom, and what. context: of the node that sent it. Raises ApiError."""
    call = BY_PATH.get(envelope.method)
    if call is None:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"this node does not know the call {envelope.method[:100]!r}")
    if call.method.request in NODES_ONLY or envelope.principal_type == NODE:
        text = f"{call.method.name} is not passed on for a {envelope.principal_type[:100]!r}"
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)
    try:
        request = call.codec.decode_request(envelope.request)
    except DecodeError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
    principal = Principal(envelope.principal_type, envelope.principal_name)
    behalf = Behalf(
        context.listener, principal, envelope.client_host, envelope.client_id, context.private, context.on_closed
    )
    return behalf, call.method, request


def seal_answer(response: Any, metadata_end: int = NOT_KNOWN) -> EnvelopeResponse:
    call = BY_RESPONSE[type(response)]
    return EnvelopeResponse(
        error_code=response.error_code,
        error_message=response.error_message,
        response=call.codec.encode_response(response),
        metadata_end=metadata_end,
    )


def read_answer(request: Any, answer: EnvelopeResponse) -> Any:
    """The response to the request that was passed on. Raises ApiError if it cannot be read."""
    call = BY_REQUEST[type(request)]
    tell(answer.metadata_end)
    if answer.error_code and not answer.response:
        return failure(call.method, ApiError(ErrorCode(answer.error_code), answer.error_message))
    try:
        return call.codec.decode_response(answer.response)
    except DecodeError as error:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the controller's answer: {error}") from error


BY_RESPONSE = {call.method.response: call for call in BY_REQUEST.values()}
