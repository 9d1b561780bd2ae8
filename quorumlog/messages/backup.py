"""What a backup asks of brokers: the metadata at one offset, and that no transaction is committed for a moment
(docs/decisions/0151-cut-a-backup-while-commits-are-held.md). None of these calls is Kafka's.

Written by `./dev proto` from proto/quorumlog/v1/backup.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class ReadMetadataRequest:
    """All metadata that the quorum had committed when the request came, or later. Passwords are in it as SCRAM
    verifiers.

    timeout_ms: How long the broker may wait for its own copy to have come so far.
    """

    timeout_ms: int


@message(frozen=True, slots=True, kw_only=True)
class ReadMetadataResponse:
    """offset: Exclusive end of the records that it stands for.
    snapshot: Record batches, as in a snapshot file of epoch 0.
    """

    error_code: int = 0
    error_message: str = ""
    offset: int = -1
    snapshot: bytes = b""


@message(frozen=True, slots=True, kw_only=True)
class HoldCommitsRequest:
    """To every broker: let no transaction be committed until the lease ends or is given back; what asks for it waits
    so
    long. Aborts, and everything else of transactions, go on. Asked again by the same holder, it says how far it
    is.

    holder: 16 random bytes; one holder at a time.
    lease_ms: From now on; at most 10,000 in all from the holder's first request on. 0: the lease is given back.
    """

    holder: bytes
    lease_ms: int


@message(frozen=True, slots=True, kw_only=True)
class HoldCommitsResponse:
    """was_held: Without a gap since the holder's first request.
    is_drained: No commit is under way: every one that was decided here has its markers in all partitions.
    partitions: The partitions of __transaction_state that this broker coordinates.
    compaction_paused_ms: How long from now no compaction begins here, by this broker's clock. 0: it is not
    paused.
    """

    error_code: int = 0
    error_message: str = ""
    was_held: bool = False
    is_drained: bool = False
    partitions: tuple[CoordinatedPartition, ...] = ()
    compaction_paused_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class CoordinatedPartition:
    index: int
    leader_epoch: int
