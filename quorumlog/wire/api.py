"""One API of the lane: Kafka's key and versions, our message types, and the conversion between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quorumlog.messages.method import Method
from quorumlog.messages.services import METHODS
from quorumlog.slices import Pace, Sliced, at_once
from quorumlog.wire.convert.mirror import from_values, from_values_sliced, to_values
from quorumlog.wire.kio_schemas import request_shape, response_shape
from quorumlog.wire.plain.form import Plain
from quorumlog.wire.schema import Shape, Values

Read = Callable[[Values, int], Any]  # (values, version) -> request
ReadSliced = Callable[[Values, int, Pace], Sliced[Any]]  # the same, of an array that may be long
Write = Callable[[Any, int], Values]  # (request, version) -> values
ReadAnswer = Callable[[Values, Any, int], Any]  # (values, request, version) -> response
WriteAnswer = Callable[[Any, Any, int], Values]  # (response, request, version) -> values

METHOD_OF: dict[type, Method] = {method.request: method for method in METHODS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """oldest, newest: versions that are served, inclusive. schema: kio's name.

    announced: the versions that ApiVersions names, inclusive; not always those that are served.
    version_for: the newest version, not above the given one, that can express this request.
    plain: the fast path for messages without rare fields.
    read_sliced: the request in slices.
    """

    key: int
    schema: str
    method: Method
    oldest: int
    newest: int
    announced: tuple[int, int]
    read_sliced: ReadSliced
    write_request: Write
    read_response: ReadAnswer
    write_response: WriteAnswer
    version_for: Callable[[Any, int], int]
    plain: Plain | None

    def read_request(self, values: Values, version: int) -> Any:
        return at_once(self.read_sliced(values, version, Pace()))

    def request_shape(self, version: int) -> Shape:
        return request_shape(self.schema, version)

    def response_shape(self, version: int) -> Shape:
        return response_shape(self.schema, version)


def api_row(
    key: int,
    schema: str,
    request: type,
    versions: tuple[int, int],
    *,
    announced: tuple[int, int] | None = None,
    read: Read | None = None,
    read_sliced: ReadSliced | None = None,
    write: Write | None = None,
    read_answer: ReadAnswer | None = None,
    write_answer: WriteAnswer | None = None,
    version_for: Callable[[Any, int], int] = lambda _request, newest: newest,
    plain: Plain | None = None,
) -> Api:
    method = METHOD_OF[request]
    oldest, newest = versions
    return Api(
        key=key,
        schema=schema,
        method=method,
        oldest=oldest,
        newest=newest,
        announced=announced or versions,
        read_sliced=read_sliced or _in_one_slice(read) or _mirrored(request),
        write_request=write or (lambda message, _version: to_values(message)),
        read_response=read_answer or (lambda values, _request, _version: from_values(method.response, values)),
        write_response=write_answer or (lambda response, _request, _version: to_values(response)),
        version_for=version_for,
        plain=plain,
    )


def _in_one_slice(read: Read | None) -> ReadSliced | None:
    """Of a request whose arrays are short, or are read by the schema."""
    if read is None:
        return None

    def sliced(values: Values, version: int, _pace: Pace) -> Sliced[Any]:
        yield from ()
        return read(values, version)

    return sliced


def _mirrored(request: type) -> ReadSliced:
    return lambda values, _version, pace: from_values_sliced(request, values, pace)
