"""How a client connects and logs in: its options under everybody's names, TLS, credentials, tokens."""
