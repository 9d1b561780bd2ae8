"""The APIs of a broker: one handler per request type, and what handlers share.

A handler knows neither the wire nor a disk: it gets the rooms it uses by `services.py`. Here are also the addresses
that clients get, forwarding to the controller, producer ids, and leaders that are suspected dead. The room may use all
rooms below it. Begin with `handlers/__init__.py`, then `handlers/produce.py`.
"""
