"""Who hears of logins at a node's listeners."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.security.login import Login, OnLogin, tell_nobody


@dataclass(slots=True)
class LoginNotice:
    """Shared by a node and its edges. The node sets `told`."""

    told: OnLogin = tell_nobody

    def tell(self, login: Login, reason: str) -> None:
        self.told(login, reason)
