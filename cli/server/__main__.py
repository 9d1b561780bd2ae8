"""`python -P -m cli.server -c FILE`: see process.py."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # read at import; its information about closed connections is noise

from cli.server.process import main

sys.exit(main())
