"""What all tests share: Hypothesis without deadlines (a busy machine is no finding), and repeatable where CI is set."""

from __future__ import annotations

import os

from hypothesis import settings

from tests import syntax_trees

settings.register_profile("quorumlog", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("quorumlog")
syntax_trees.install()
