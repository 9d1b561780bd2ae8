"""`python -P -m quorumlog_cli.server`, as unit files of earlier versions say; `python -P -m quorumlog_server` is
meant.
"""

from __future__ import annotations

import quorumlog_server.__main__  # noqa: F401  # it runs the node, and exits
