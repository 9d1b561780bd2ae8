"""How `log dump` reads keys and values: Kafka's decoders (`org.apache.kafka.tools.api`), by class or by a word."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.records import Record
from quorumlog_cli.offline.describe import Plain

Decoder = Callable[[bytes], str | int]


def _number(width: int) -> Decoder:
    def decode(data: bytes) -> str | int:
        return int.from_bytes(data, signed=True) if len(data) == width else f"not {width} bytes: {data.hex()}"

    return decode


DECODERS: dict[str, Decoder] = {
    "string": lambda data: data.decode("utf-8", "backslashreplace"),
    "integer": _number(4),
    "long": _number(8),
    "hex": lambda data: data.hex(),
}
_CLASSES = {"StringDecoder": "string", "IntegerDecoder": "integer", "LongDecoder": "long", "DefaultDecoder": "hex"}


def decoder(name: str) -> Decoder | None:
    """name: one of DECODERS, or a class of Kafka's, with or without its package. None: there is no such."""
    return DECODERS.get(_CLASSES.get(name.rpartition(".")[2], name))


def decoded(record: Record, key: Decoder, value: Decoder) -> Plain:
    """Key and payload of a record as the decoders say; null stays null."""
    return {
        "key": None if record.key is None else key(record.key),
        "payload": None if record.value is None else value(record.value),
    }
