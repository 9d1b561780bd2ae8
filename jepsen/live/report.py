"""stub"""

from __future__ import annotations
from pathlib import Path


def write_report(outcome, folder: Path) -> Path:
    import pickle

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "o.pickle").write_bytes(pickle.dumps(outcome))
    for r, p in zip(outcome.strikes, outcome.pauses):
        print(r.strike.number, r.strike.kind.value, p.longest_ms, r.expected_ms, p.acknowledged, r.bit)
    print(outcome.ledger.errors, outcome.reader_errors, outcome.leader_only_missing, outcome.minimums, outcome.ways)
    return folder
