"""gRPC settings of both sides.

They replace these defaults: 4 MiB messages, a reconnect back-off of up to 120 s, no keepalive, retries that may repeat
a call, subchannels shared between unrelated connections, ports shared by two servers.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.rpc.transport import CONNECT_TIMEOUT_MS_DEFAULT, MAX_MESSAGE_BYTES_DEFAULT

Arguments = list[tuple[str, int]]

_FRAMING_BYTES = 1024 * 1024  # overhead around the records of the largest message
_MAX_METADATA_BYTES = 20 * 1024  # a token has up to 16 KiB
_MAX_STREAMS_PER_CONNECTION = 4_096
# Calls that no task of ours has taken yet, of all connections of a listener: above that gRPC cancels some, anybody's.
# Its own limit is 1,000, which one connection reaches alone if it resets streams as soon as they are open
# (CVE-2023-44487).
_MAX_PENDING_CALLS = 3 * _MAX_STREAMS_PER_CONNECTION
_HANDSHAKE_TIMEOUT_MS = 10_000  # of TLS, and then again of the first bytes of HTTP/2
_PING_INTERVAL_ALLOWED_MS = 500  # a server accepts pings this often; a stricter limit would cut off our clients


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcOptions:
    """keepalive_time_ms: after this silence, ping the peer. keepalive_timeout_ms: how long to wait for its answer.
    Keepalive detects broken connections; whether a node is alive is decided by heartbeats, not here.
    health, reflection: also serve grpc.health.v1 and the schema to every caller of the listener.
    """

    max_message_bytes: int = MAX_MESSAGE_BYTES_DEFAULT
    connect_timeout_ms: int = CONNECT_TIMEOUT_MS_DEFAULT
    keepalive_time_ms: int = 2_000
    keepalive_timeout_ms: int = 5_000
    initial_backoff_ms: int = 100
    max_backoff_ms: int = 1_000
    health: bool = True
    reflection: bool = False

    def channel_arguments(self) -> Arguments:
        return [
            *self._common_arguments(),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_http_proxy", 0),
            ("grpc.initial_reconnect_backoff_ms", self.initial_backoff_ms),
            ("grpc.min_reconnect_backoff_ms", self.connect_timeout_ms),  # gRPC's name for the connect timeout
            ("grpc.max_reconnect_backoff_ms", self.max_backoff_ms),
        ]

    def server_arguments(self) -> Arguments:
        return [
            *self._common_arguments(),
            ("grpc.so_reuseport", 0),
            ("grpc.server.max_pending_requests", _MAX_PENDING_CALLS),
            ("grpc.server.max_pending_requests_hard_limit", 2 * _MAX_PENDING_CALLS),
            ("grpc.server_handshake_timeout_ms", _HANDSHAKE_TIMEOUT_MS),  # it would be two minutes
            ("grpc.max_concurrent_streams", _MAX_STREAMS_PER_CONNECTION),
            ("grpc.http2.min_ping_interval_without_data_ms", _PING_INTERVAL_ALLOWED_MS),
            ("grpc.http2.max_ping_strikes", 0),
        ]

    def _common_arguments(self) -> Arguments:
        return [
            ("grpc.max_receive_message_length", self.max_message_bytes + _FRAMING_BYTES),
            ("grpc.max_send_message_length", self.max_message_bytes + _FRAMING_BYTES),
            ("grpc.max_metadata_size", _MAX_METADATA_BYTES),
            ("grpc.keepalive_time_ms", self.keepalive_time_ms),
            ("grpc.keepalive_timeout_ms", self.keepalive_timeout_ms),
            (
                "grpc.http2.ping_timeout_ms",
                self.keepalive_timeout_ms,
            ),  # otherwise a minute may pass between pings, whatever keepalive_time_ms says
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
        ]
