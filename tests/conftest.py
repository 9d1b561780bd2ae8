"""What all tests share: Hypothesis without deadlines (a busy machine is no finding), and repeatable where CI is set."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("quorumlog", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("quorumlog")
