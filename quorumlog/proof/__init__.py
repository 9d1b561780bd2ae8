"""How nodes prove to each other that they know the cluster's secret, without sending it.

Pure: no sockets, no clock, no randomness of its own. Both wires and the simulation run these classes.

- `keys`: what a node derives from the secret, once in a process.
- `scram_server`, `scram_client`: one exchange by SCRAM-SHA-256 (RFC 5802, RFC 7677), in which both sides prove
  themselves. On the lane it proves the connection. On gRPC, which hides its connections, it begins a session.
- `caller_session`, `server_sessions`: each gRPC call of a session carries a MAC (`call_proof`) with a counter that the
  server takes once (`window`).
- `refusal_log`: how often a refusal is logged.

What this does not protect is listed in docs/security.md.
"""
