"""SASL: mechanisms and the states of a connection, without IO (RFC 4422)."""
