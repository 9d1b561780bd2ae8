"""`python -P -m cli.server -c FILE`: see process.py."""

from __future__ import annotations

import sys

from cli.server.process import main

sys.exit(main())
