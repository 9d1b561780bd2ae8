"""Raw sockets to one side, with Kafka's own schemas: what is sent is exactly what the step says.

An answer is its values, or the one word for what came in its place: CLOSED, SILENT, or what cannot be read.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from differential.step import Step, Values
from quorumlog.wire.format.cursor import Malformed
from quorumlog.wire.format.header import API_VERSIONS_KEY, RequestHeader
from quorumlog.wire.format.kio_schemas import request_shape, response_shape
from quorumlog.wire.protocol.apis import APIS
from quorumlog.wire.protocol.codec import decode_response_values, encode_request_values
from quorumlog.wire.protocol.delegation_tokens import TOKEN_KEYS

CLOSED = "<the connection was closed>"
SILENT = "<no answer>"
NOTHING = "<nothing, as was asked for>"
ANSWER_S = 8.0
CONNECT_S = 10.0
CLIENT_ID = "differential"
API_VERSIONS = "api_versions"
KEYS: dict[str, int] = {api.schema: api.key for api in APIS} | {API_VERSIONS: API_VERSIONS_KEY} | TOKEN_KEYS
NAMES: dict[int, str] = {key: name for name, key in KEYS.items()}
OLDEST: dict[str, int] = {
    api.schema: api.oldest for api in APIS
}  # Produce is announced from 0 on, and served from 3 on

Answer = Values | str
Versions = dict[str, tuple[int, int]]  # by kio's name: oldest and newest, both inclusive


class Ended(Exception):
    """A side takes no connections any more."""


class Socket:
    """One connection. At most one request waits for its answer."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=CONNECT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._number = 0
        self._received = bytearray()
        self.waits_for: tuple[RequestHeader, str] | None = None

    def send(self, api: str, version: int, values: Values) -> None:
        """Raises struct.error for numbers that their fields cannot hold. Of a dead connection the answer tells."""
        self._number += 1
        header = RequestHeader(KEYS[api], version, self._number, CLIENT_ID)
        frame = b"".join(bytes(part) for part in encode_request_values(header, request_shape(api, version), values))
        self.waits_for = (header, api)
        try:
            self._socket.sendall(frame)
        except OSError:
            pass  # the answer will be CLOSED

    def receive(self, wait_s: float = ANSWER_S) -> Answer:
        """The answer to the request that waits. After SILENT it can be asked for again; after CLOSED nothing can."""
        assert self.waits_for is not None
        header, api = self.waits_for
        frame = self._frame(time.monotonic() + wait_s)
        if isinstance(frame, str):
            return frame
        self.waits_for = None
        try:
            return decode_response_values(header, response_shape(api, header.version), memoryview(frame))
        except Malformed as error:
            return f"<cannot be read: {error}>"

    def close(self) -> None:
        self._socket.close()

    def _frame(self, until_s: float) -> bytes | str:
        """One answer without its length."""
        while True:
            if len(self._received) >= 4:
                (size,) = struct.unpack_from(">i", self._received)
                if len(self._received) >= 4 + size:
                    frame = bytes(self._received[4 : 4 + size])
                    del self._received[: 4 + size]
                    return frame
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return SILENT
            self._socket.settimeout(left_s)
            try:
                more = self._socket.recv(1 << 20)
            except TimeoutError:
                return SILENT
            except OSError:
                return CLOSED
            if not more:
                return CLOSED
            self._received += more


class Conversation:
    """All connections to one side, by their lanes."""

    def __init__(self, address: tuple[str, int], name: str) -> None:
        """name: of the side."""
        self._address, self._name = address, name
        self._lanes: dict[str, Socket] = {}

    def begin(self, step: Step, values: Values) -> None:
        """values: resolved. Raises struct.error, Ended."""
        if step.lane not in self._lanes:
            try:
                self._lanes[step.lane] = Socket(self._address)
            except OSError as error:
                raise Ended(f"{self._name} at port {self._address[1]}: {error}") from error
        lane = self._lanes[step.lane]
        lane.send(step.api, step.version, values)
        if not step.answered:  # whether the connection still lives tells a question behind it
            lane.send(API_VERSIONS, 0, {})

    def end(self, step: Step, wait_s: float = ANSWER_S) -> Answer:
        answer = self._lanes[step.lane].receive(wait_s)
        if not isinstance(answer, str):
            return answer if step.answered else NOTHING
        if answer != SILENT:
            self.drop(step.lane)
        return answer

    def ask(self, api: str, version: int, values: Any) -> Answer:
        """A question of the suite's own. Raises Ended."""
        step = Step(api=api, version=version, values=values, lane="suite")
        self.begin(step, values)
        answer = self.end(step)
        if answer == SILENT:
            self.drop("suite")
        return answer

    def is_busy(self, lane: str) -> bool:
        return lane in self._lanes and self._lanes[lane].waits_for is not None

    def drop(self, lane: str) -> None:
        if lane in self._lanes:
            self._lanes.pop(lane).close()

    def close(self) -> None:
        for lane in list(self._lanes):
            self.drop(lane)

    def versions(self) -> tuple[Versions, dict[int, tuple[int, int]]]:
        """What the side announces: of the APIs whose schemas we have, and all by their keys."""
        answer = self.ask(API_VERSIONS, 3, {"client_software_name": CLIENT_ID, "client_software_version": "1"})
        assert not isinstance(answer, str), answer
        every = {api["api_key"]: (api["min_version"], api["max_version"]) for api in answer["api_keys"]}
        known = {NAMES[key]: found for key, found in every.items() if key in NAMES}
        return {name: (max(low, OLDEST.get(name, low)), high) for name, (low, high) in known.items()}, every


def codes_of(values: object) -> set[int]:
    """All error codes of an answer but 0, under each name that versions have for them."""
    if isinstance(values, dict):
        own = {value for name, value in values.items() if name.endswith("error_code") and value}
        return own.union(*(codes_of(value) for value in values.values()))
    if isinstance(values, list):
        return set().union(*(codes_of(value) for value in values))
    return set()
