"""The data lane: Kafka's wire protocol on plain sockets, for both ends of a connection.

The serving side reads like a request's way: `server.py`, `served.py` (one connection), `framing.py`, `codec.py`,
`answering.py`, `outgoing.py`. The calling side is `client.py` over `socket_calls.py`; `routing.py` joins the lane and
gRPC behind one transport. `apis.py` is the table of APIs; `schema.py` reads and writes any message by Kafka's schemas,
`plain/` the common ones faster, `convert/` turns them into our messages. Kafka's types stay inside this package.
"""
