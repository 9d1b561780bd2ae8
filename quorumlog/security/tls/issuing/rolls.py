"""An authority is renewed under its own name in three steps, each with a roll over all nodes and clients behind it.

1. A second authority is trusted beside the first. It issues nothing yet, so nobody can be refused.
2. It issues all certificates anew. Whoever still has an old one is trusted as before.
3. The first one is trusted no longer.

Which step is next follows from the files, so a step that was cut short is simply repeated. That all machines have what
the last step wrote is the operator's to see: nobody here can look at them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime

from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.issuing.certificates import LEAF_DAYS, cluster_of, new_authority
from quorumlog.security.tls.issuing.folder import AUTHORITY_KEY, NEXT_KEY, PUBLIC, TRUST, Folder, bundle
from quorumlog.security.tls.material import is_issued_by


@dataclass(frozen=True, slots=True)
class Step:
    """number: from 1. done: what was done, and what has to be brought to which machines before the next one."""

    number: int
    done: str


def next_step(folder: Folder) -> int:
    """1, 2 or 3. Raises NotThere, BadTls."""
    if (folder.path / NEXT_KEY).exists():
        return 2
    return 3 if len(folder.trusted()) > 1 else 1


def renew_authority(folder: Folder, now: datetime, days: int = LEAF_DAYS) -> Step:
    """Carry the next step out. Raises NotThere, BadTls, BadRequest, OSError."""
    number = next_step(folder)
    (_trust_a_second, lambda f, n: _issue_by_it(f, n, days), _forget_the_first)[number - 1](folder, now)
    return Step(number, _DONE[number - 1])


_DONE = (
    "ca.pem has a second authority. Copy it to every node and client and let them load it, all of them, then go on",
    "all certificates are issued by the second authority. Copy them to their nodes and clients, then go on",
    "the first authority is out of ca.pem. Copy it to every node and client; then the renewal is complete",
)


def _trust_a_second(folder: Folder, now: datetime) -> None:
    """Its key is written last: without the key the next call takes the second authority out again."""
    first = folder.authority()
    second = new_authority(cluster_of(first.certificate), now)
    folder.write(TRUST, bundle([first.certificate, second.certificate]), PUBLIC, replace=True)
    try:
        folder.write(NEXT_KEY, second.key_pem)
    except OSError:
        folder.write(TRUST, bundle([first.certificate]), PUBLIC, replace=True)
        raise


def _issue_by_it(folder: Folder, now: datetime, days: int) -> None:
    second = folder.authority(NEXT_KEY)
    folder.issue([folder.subject_of(one) for one in folder.issued()], days, replace=True, key_file=NEXT_KEY)
    others = [one for one in folder.trusted() if one != second.certificate]
    folder.write(TRUST, bundle([second.certificate, *others]), PUBLIC, replace=True)
    os.replace(folder.path / NEXT_KEY, folder.path / AUTHORITY_KEY)


def _forget_the_first(folder: Folder, now: datetime) -> None:
    second = folder.authority()
    strangers = [one.name for one in folder.issued() if not is_issued_by(one.certificate, second.certificate)]
    if strangers:
        raise BadTls(
            f"{', '.join(strangers)}: issued by the first authority, and it would be trusted no longer: renew first"
        )
    folder.write(TRUST, bundle([second.certificate]), PUBLIC, replace=True)
