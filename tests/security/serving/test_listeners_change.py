"""A node takes its clients from PLAINTEXT to SASL_SSL by two restarts: a second listener, then without the first.

Three processes under load go the same way in tests/live/test_clients_to_sasl_ssl_live.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.aio import AsyncCluster
from quorumlog_server.config.config import NodeConfig
from tests.scenarios.one_node import RealNode
