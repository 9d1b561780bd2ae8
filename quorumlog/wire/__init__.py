"""The data lane: Kafka's wire protocol on plain sockets, for both ends of a connection.

`format/` reads and writes bytes: any message by Kafka's schemas (`schema.py`). `convert/` turns Kafka's messages into
ours, `fast/` reads and writes common ones without either. `protocol/` is what both ends agree on: `apis.py` is the
table of APIs, `codec.py` makes whole frames. `serving/` reads like a request's way: `server.py`, `served.py` (one
connection), `answering.py`, `outgoing.py`. `calling/` is `client.py` over `socket_calls.py`. `transport.py` is both
ends of the lane; `routing.py` joins it and gRPC behind one transport. Kafka's types stay inside this package.
"""
