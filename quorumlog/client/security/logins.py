"""Logins of clients, as `caller_security.Login`: they begin a mechanism's exchange with fresh nonces and tokens."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quorumlog.client.security.tokens import ask_endpoint
from quorumlog.rpc.caller_security import Mechanism
from quorumlog.security.sasl.client import new_client
