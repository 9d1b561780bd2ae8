"""What a client reads about TLS: for Java, for librdkafka (and all that stands on it), for quorumlog's own.

Paths are absolute, because each of them reads a relative one from where it is started.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

_JAVA = "For Java clients and the tools of Apache Kafka (--command-config)"
_LIBRDKAFKA = "For librdkafka: confluent-kafka, kcat (-F) and others"
_OURS = "For quorumlog's commands: copy it into the file that `quorumlog profile show` names, and set bootstrap_servers"
_ANY = "For quorumlog's commands: copy it into the file that `quorumlog profile show` names"
MOVED = "If the files are moved, change the paths."
RENEWED = "`quorumlog up` writes this file anew: make changes in a copy."


def client_files(name: str, folder: Path, *, has_key: bool) -> dict[str, str]:
    """Text by the name of its file. name: of the client's own files. has_key: it shows a certificate."""
    trust, keystore = str(folder / "ca.pem"), str(folder / f"{name}.keystore.pem")
    java = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": trust}
    librdkafka = {"security.protocol": "ssl", "ssl.ca.location": trust}
    if has_key:
        java |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": keystore}
        librdkafka |= {
            "ssl.certificate.location": str(folder / f"{name}.pem"),
            "ssl.key.location": str(folder / f"{name}.key"),
        }
    ours = {key.replace(".", "_"): value for key, value in java.items() if not key.endswith(".type")}
    ours |= {"ssl_truststore_location": trust, **({"ssl_keystore_location": keystore} if has_key else {})}
    return {
        f"{name}.toml": _profile(name, ours),
        f"{name}.properties": _properties(_JAVA, {key: java_value(value) for key, value in java.items()}),
        f"{name}.librdkafka.properties": _properties(_LIBRDKAFKA, librdkafka),
    }


def login_files(
    *, java: Mapping[str, str], librdkafka: Mapping[str, str], ours: Mapping[str, str]
) -> tuple[str, str, str]:
    """Texts of the files of clients that log in at a cluster of `quorumlog up`, for each of the three."""
    return (
        _properties(_JAVA, {key: java_value(value) for key, value in java.items()}, RENEWED),
        _properties(_LIBRDKAFKA, librdkafka, RENEWED),
        _profile("client", ours, (_ANY, RENEWED)),
    )


def node_lines(name: str, folder: Path) -> list[str]:
    """What a node's server.properties says to use its files."""
    said = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / f"{name}.keystore.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
    }
    return [f"{key}={java_value(value)}" for key, value in said.items()]


def java_value(text: str) -> str:
    """As Java reads it back from a properties file: what is not in Latin-1 as \\uXXXX, in halves where it takes two."""
    lead = len(text) - len(text.lstrip(" "))
    escaped = (
        text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace("\f", "\\f")
    )
    units = escaped.encode("utf-16-be")
    signs = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    plain = "".join(chr(sign) if 32 <= sign < 127 else f"\\u{sign:04x}" for sign in signs)
    return "\\ " * lead + plain[lead:]


def _properties(title: str, values: Mapping[str, str], note: str = MOVED) -> str:
    lines = [f"{key}={value}" for key, value in values.items()]
    return "\n".join([f"# {title}.", f"# {note}", *lines, ""])


def _profile(name: str, values: Mapping[str, str], notes: tuple[str, str] = (_OURS, MOVED)) -> str:
    """Strings of JSON are strings of TOML."""
    table = re.sub(r"[^A-Za-z0-9_-]", "-", name.removeprefix("client-"))
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join([f"# {notes[0]}.", f"# {notes[1]}", f"[profiles.{table}]", *lines, ""])
