"""How long acknowledgements in one partition may pause for each kind of strike. Stated before a run, judged after it.

A pause is the longest time without an acknowledgement (acks=all) of a partition, from shortly before the strike until
the cluster is whole again. It consists of what the cluster waits for and of what the client waits for. The slack is for
a machine that is shared with others.
"""

from __future__ import annotations

from jepsen.live.plan import MOVE_STEPS, NETWORK_STEPS, STALL_MS, Blow, Kind, Step, Strike

SESSION_MS = 3_000  # broker.session.timeout.ms of the nodes
ELECTION_MS = 2_000  # silence of the quorum's leader (1 s), then a candidacy (0.5 to 1 s)
CLIENT_MS = 2_000  # a refused or broken request, then new metadata, then the retry
START_MS = 6_000  # a process, until it serves
SLACK_MS = 4_000
FAILOVER_MS = SESSION_MS + ELECTION_MS + CLIENT_MS + SLACK_MS
CALM_MS = CLIENT_MS + SLACK_MS  # between two strikes, while the cluster is whole


def most_pause_ms(strike: Strike) -> int:
    """The longest pause that is still as expected."""
    match strike.kind:
        case Kind.KILL | Kind.FAILING_DISK:
            return FAILOVER_MS
        case Kind.RESTART:
            return CLIENT_MS + SLACK_MS
        case Kind.PAUSE | Kind.FULL_DISK | Kind.LOW_DISK:  # a leader refuses records until there is space again
            return strike.hold_ms + FAILOVER_MS
        case Kind.ALL:
            return strike.hold_ms + START_MS + FAILOVER_MS
        case Kind.TWO:
            starts = any(blow is Blow.KILL for blow, _ in strike.blows)
            return strike.hold_ms + (START_MS if starts else 0) + FAILOVER_MS
        case Kind.HUNG_DISK:
            return STALL_MS + ELECTION_MS + CLIENT_MS + SLACK_MS  # nobody waits for the end of a session
        case Step.UPGRADE | Step.LEVELS:  # clean restarts
            return CLIENT_MS + SLACK_MS
        case Step():
            holds = strike.kind in NETWORK_STEPS  # a cut follower also keeps what its leader waits for
            starts = strike.kind in MOVE_STEPS
            return (strike.hold_ms if holds else 0) + (START_MS if starts else 0) + FAILOVER_MS
