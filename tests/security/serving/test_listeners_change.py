"""A node takes its clients from PLAINTEXT to SASL_SSL by two restarts: a second listener, then without the first.

Three processes under load go the same way in tests/live/test_clients_to_sasl_ssl_live.py.
"""

from __future__ import annotations
