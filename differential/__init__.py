"""`./dev differential`: the same random requests to Apache Kafka and to us, and every field of every answer compared.

`builders.py` makes meaningful requests of every API, `sequences.py` strings them together from a seed, `odd.py` puts an
odd value into one. `conversation.py` sends them, `compare.py` compares the answers, `wanted.py` is the table of the
differences that we want, each with its reason. `run.py` plays a sequence on both sides, `shrink.py` makes one that
fails shorter, `__main__.py` has the options and the report.
"""
