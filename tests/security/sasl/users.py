"""Users of a test, with passwords: the credentials that a server looks up."""

from __future__ import annotations

from quorumlog.security.sasl.credential import ScramCredential
from quorumlog.security.sasl.mechanism import SCRAM_SHA_512
from quorumlog.security.sasl.scram_keys import HASHES, MIN_ITERATIONS, credential_of, salted_password

SALT = b"0123456789abcdef"


class Users(dict[tuple[str, str], ScramCredential]):
    """`mechanism.Credentials`, by mechanism and name. asked: how often somebody was looked up."""

    def __init__(self, **passwords: str) -> None:
        """passwords: by name, for SCRAM-SHA-512."""
        super().__init__()
        self.asked = 0
        for name, password in passwords.items():
            self.put(name, password)

    def put(
        self,
        name: str,
        password: str,
        *mechanisms: str,
        salt: bytes = SALT,
        iterations: int = MIN_ITERATIONS,
    ) -> Users:
        """mechanisms: none: SCRAM-SHA-512."""
        for mechanism in mechanisms or (SCRAM_SHA_512,):
            salted = salted_password(password, salt, iterations, HASHES[mechanism])
            self[mechanism, name] = credential_of(mechanism, salted, salt, iterations)
        return self

    def scram(self, mechanism: str, name: str) -> ScramCredential | None:
        self.asked += 1
        return self.get((mechanism, name))
