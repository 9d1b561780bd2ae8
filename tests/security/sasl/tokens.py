"""An issuer of tokens, with keys of every kind."""

from __future__ import annotations

import json
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

ISSUER, AUDIENCE = "https://issuer.test", "quorumlog"
NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000

KEYS: dict[str, Key] = {
    "rsa": RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"}),
    "p256": ECKey.generate_key("P-256", {"kid": "p256"}),
    "p384": ECKey.generate_key("P-384", {"kid": "p384"}),
    "p521": ECKey.generate_key("P-521", {"kid": "p521"}),
    "ed": OKPKey.generate_key("Ed25519", {"kid": "ed"}),
}
OTHER_RSA = RSAKey.generate_key(2048, {"kid": "rsa"})  # of another issuer, under the same id
HMAC_KEY = OctKey.generate_key(256)


def public(*kids: str) -> list[dict[str, Any]]:
    return [KEYS[kid].as_dict(private=False) for kid in kids]


def document(*kids: str) -> bytes:
    return json.dumps({"keys": public(*(kids or KEYS))}).encode()


def claims(**changes: Any) -> dict[str, Any]:
    """None takes a claim away."""
    told = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": NOW_S - 10, "exp": NOW_S + 300, **changes}
    return {name: value for name, value in told.items() if value is not None}


def signed(told: dict[str, Any], algorithm: str = "ES256", kid: str | None = "p256", key: Key | None = None) -> str:
    header = {"alg": algorithm} | ({"kid": kid} if kid is not None else {})
    return jwt.encode(header, told, key or KEYS[kid or "p256"], algorithms=[algorithm])
