"""A client's options on their way to another machine: whole in themselves, and without a secret in what is printed.

What names a file or a secret's source is read here, once. So where the options arrive no file is needed, and nothing is
asked of an environment that is another one there. A token is the exception: it ends before a long job does, so each
machine gets its own, from the endpoint with the id and secret that came with the options, or from the file, at each
login.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from quorumlog.client.errors import ConfigError
from quorumlog.client.options import CommonOptions, parse_options
from quorumlog.client.security.options import NAMES, SECRET_NAMES
from quorumlog.client.security.sources import with_secrets
from quorumlog.security.secret import HIDDEN


class CarriedOptions(Mapping[str, Any]):
    """Of any client, by their underscored names. Pickled with its secrets, which a task needs; `repr` shows none."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr({name: HIDDEN if name in SECRET_NAMES and one else one for name, one in self._values.items()})

    def __reduce__(self) -> tuple[type[CarriedOptions], tuple[dict[str, Any]]]:
        return CarriedOptions, (self._values,)


def carried(options: Mapping[str, Any]) -> CarriedOptions:
    """options: of any client, under their underscored names. Raises ConfigError for what cannot be read or meant."""
    resolved = with_secrets(options)
    given = {name: value for name, value in resolved.items() if name in NAMES}
    if not given:
        return CarriedOptions(resolved)
    security = parse_options(CommonOptions, given, {})
    texts = _texts(security) if security.protocol.tls else {}
    return CarriedOptions({**{name: one for name, one in resolved.items() if name not in _OF_FILES}, **texts})


# What names a file, or is of no use without one: the key travels without its password.
_OF_FILES = ("ssl_truststore_location", "ssl_keystore_location", "ssl_key_location", "ssl_key_password")


def _texts(security: CommonOptions) -> dict[str, str]:
    """The files' contents. What was not said stays away: then the authorities of the other machine count."""
    from quorumlog.security.tls.contexts import read_here
    from quorumlog.security.tls.errors import BadTls

    try:
        material = read_here(security.tls)
    except BadTls as error:
        raise ConfigError(str(error)) from None
    found = {
        "ssl_truststore_certificates": material.authorities,
        "ssl_keystore_certificate_chain": material.chain,
        "ssl_keystore_key": material.key,
    }
    return {name: text.decode() for name, text in found.items() if text}
