"""Makes the generator importable: `proto/` contains scripts and is not a package."""

from __future__ import annotations

import sys
from pathlib import Path

PROTO = Path(__file__).resolve().parents[2] / "proto"

for folder in (PROTO, PROTO / "gen"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
