"""`python -P -m quorumlog_server -c FILE`: see process.py."""

from __future__ import annotations

import os
import sys

from quorumlog_server.process.lean_start import load_no_more_than_needed

load_no_more_than_needed()

from quorumlog_server.process.process import main  # noqa: E402  # imported after the settings above

os.umask(0o077)  # records, credentials and metadata are for the node's own user
sys.exit(main())
