"""The users of a secured cluster: their passwords, and how their clients log in.

ROOT is the super user, as which producers, readers and the operator of every run work. The others come and go
(workload/security/officer.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jepsen.sim.settings import LOGIN_MECHANISM
from quorumlog.client.security.logins import PasswordLogin
from quorumlog.rpc.caller_security import CallerSecurity
from quorumlog.security.sasl.scram_format import InClear, ScramArgument
from quorumlog.security.secret import Secret
from quorumlog_server.directories.first_metadata import FirstUser

ROOT = "root"
TENANTS = ("ada", "bob", "cy")
_ITERATIONS = 4_096


def _first(name: str) -> FirstUser:
    password = Secret(f"{name}-1")
    argument = ScramArgument(
        mechanism=LOGIN_MECHANISM,
        name=name,
        iterations=_ITERATIONS,
        password=InClear(password),
        salt=None,
        salted_password=None,
    )
    return argument, password


FIRST_USERS = tuple(_first(name) for name in (ROOT, *TENANTS))


@dataclass(slots=True)
class Users:
    """passwords: the newest one that was asked for, whether the cluster has taken it or not."""

    passwords: dict[str, str] = field(default_factory=lambda: {name: f"{name}-1" for name in (ROOT, *TENANTS)})

    def security(self, name: str, random_bytes: Callable[[int], bytes]) -> CallerSecurity:
        """Of a client of the lane that begins now."""
        login = PasswordLogin(LOGIN_MECHANISM, name, Secret(self.passwords[name]), random_bytes)
        return CallerSecurity(protocol="SASL_PLAINTEXT", login=login)
