"""The matrix of clients, protections and situations: its cells, what cannot be, and the sample that CI runs.

A cell is one client in one situation at a listener with one protection. Either it works, or the application is told a
clear error within ANSWER_S. A client that cannot run on this machine is skipped for one of LISTED_SKIPS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import NamedTuple

ANSWER_S = 10.0

CONFLUENT, KAFKA_PYTHON, AIOKAFKA = "confluent-kafka", "kafka-python", "aiokafka"
JAVA, KCAT, FRANZ, KAFKAJS, GRPCURL = "java", "kcat", "franz-go", "kafkajs", "grpcurl"
MINIMUM: dict[str, tuple[int, ...]] = {  # a cell of an older one fails
    CONFLUENT: (2, 10), KAFKA_PYTHON: (3, 0), AIOKAFKA: (0, 12), JAVA: (4, 3, 1), KCAT: (1, 7), FRANZ: (1, 22),
    KAFKAJS: (2, 2, 4), GRPCURL: (1, 9),
}  # fmt: skip
FAMILIES = tuple(MINIMUM)

SSL, MUTUAL, PLAIN, SCRAM_256, SCRAM_512 = "SSL", "mTLS", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"
OAUTH = "OAUTHBEARER"
CERTIFICATES, SCRAMS = (SSL, MUTUAL), (SCRAM_256, SCRAM_512)
PROTECTIONS = (*CERTIFICATES, PLAIN, *SCRAMS, OAUTH)

RIGHT = "right"
WRONG_PASSWORD = "wrong password"  # mTLS: a certificate of a foreign authority; OAUTHBEARER: signed by a foreign key
WRONG_USER = "wrong user"  # mTLS: no certificate; OAUTHBEARER: for another audience
WRONG_CA, WRONG_HOST = "wrong CA", "wrong host"
EXPIRED = "expired"  # the client's certificate or its token; SSL: the node's certificate
PLAIN_TO_TLS, TLS_TO_PLAIN = "plaintext to TLS", "TLS to plaintext"
NO_ACL, REVOKED, RELOAD = "no ACL", "revoked while running", "reload"
REAUTH, THROTTLED = "re-auth 2 s", "throttled"
SITUATIONS = (
    RIGHT, WRONG_PASSWORD, WRONG_USER, WRONG_CA, WRONG_HOST, EXPIRED, PLAIN_TO_TLS, TLS_TO_PLAIN, NO_ACL, REVOKED,
    RELOAD, REAUTH, THROTTLED,
)  # fmt: skip

SERVED = (RIGHT, REVOKED, RELOAD, REAUTH, THROTTLED)  # at least at first

NO_JAVA = "there is no JDK of 17 or newer, or no mvn, on this machine"
NO_KCAT = "there is no kcat on this machine"
NO_GO, NO_NODE = "there is no Go on this machine", "there is no Node.js, or no npm, on this machine"
NO_PACKAGES = "Maven, Go's module proxy or npm cannot be reached from here"  # not accepted in CI
LISTED_SKIPS = (NO_JAVA, NO_KCAT, NO_GO, NO_NODE, NO_PACKAGES)


class Cell(NamedTuple):
    family: str
    protection: str
    situation: str

    def __str__(self) -> str:
        return "-".join(self)


_ONE_CALL = "each call is a process and a connection of its own"
_CANNOT_BE: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str], ...] = (
    (FAMILIES, (SSL,), (WRONG_PASSWORD, WRONG_USER), "the client shows nothing of its own"),
    (FAMILIES, (PLAIN, *SCRAMS), (EXPIRED,), "a password has no end; `re-auth` ends its session"),
    (FAMILIES, CERTIFICATES, (REAUTH,), "there is no login to renew"),
    ((GRPCURL,), SCRAMS, SITUATIONS, "gRPC takes Basic and Bearer: SCRAM has more rounds than a call"),
    ((GRPCURL, KCAT), PROTECTIONS, (REAUTH,), _ONE_CALL),
    ((GRPCURL, KCAT), PROTECTIONS, (THROTTLED,), _ONE_CALL),
    ((KCAT,), SCRAMS, SITUATIONS, "the librdkafka of its packages repeats its nonce; Kafka refuses that, too"),
    ((KCAT,), (OAUTH,), SITUATIONS, "it takes a token from a token endpoint only, over https"),
)  # families, protections, situations, and why


def why_not(cell: Cell) -> str:
    """Why there is no such cell; "" if there is one."""
    for families, protections, situations, why in _CANNOT_BE:
        if cell.family in families and cell.protection in protections and cell.situation in situations:
            return why
    return ""


ALL = tuple(Cell(*one) for one in product(FAMILIES, PROTECTIONS, SITUATIONS))
CELLS = tuple(cell for cell in ALL if not why_not(cell))

Pair = tuple[tuple[int, str], tuple[int, str]]


def pairs(cell: Cell) -> Iterator[Pair]:
    """Each two of its values, with the columns that they are in."""
    return combinations(enumerate(cell), 2)


def sample(cells: Iterable[Cell] = CELLS) -> tuple[Cell, ...]:
    """Few cells in which each pair of values occurs that occurs in any: always the cell with most new ones, the first
    of several."""
    left = list(cells)
    new = {pair for cell in left for pair in pairs(cell)}
    taken: list[Cell] = []
    while new:
        best = max(left, key=lambda cell: sum(pair in new for pair in pairs(cell)))
        new.difference_update(pairs(best))
        taken.append(best)
    return tuple(sorted(taken, key=CELLS.index))


def table() -> list[str]:
    """Lines of docs/kafka-clients.md."""
    lines = [f"| | from | {' | '.join(PROTECTIONS)} |", f"|---|---|{'---|' * len(PROTECTIONS)}"]
    for family, least in MINIMUM.items():
        counts = [sum(cell[:2] == (family, protection) for cell in CELLS) for protection in PROTECTIONS]
        lines.append(f"| {family} | {'.'.join(map(str, least))} | {' | '.join(str(one or '-') for one in counts)} |")
    return lines


def version_of(text: str) -> tuple[int, ...]:
    """2.10.1rc2 is (2, 10, 1)."""
    numbers: list[int] = []
    for part in text.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
