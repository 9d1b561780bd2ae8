"""What each request needs, and what a client is answered that may not: one table for both wires (`table.py`).

A row splits a request before its handler sees it: what is allowed goes on, what is denied is answered here, and the
answers are put together in the order of the request. So a handler knows nothing of access rules, and an answer to what
is denied does not depend on whether it exists.
"""
