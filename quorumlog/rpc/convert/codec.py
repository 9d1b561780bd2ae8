"""What the generated table of codecs (`services.CODECS`) is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Codec(NamedTuple):
    """How the two messages of one method become bytes and come back. Both decoders raise DecodeError."""

    encode_request: Callable[[Any], bytes]
    decode_request: Callable[[bytes], Any]
    encode_response: Callable[[Any], bytes]
    decode_response: Callable[[bytes], Any]
