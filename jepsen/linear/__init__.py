"""Linearizability: one order of operations, each taking effect between its call and its answer, explains all answers.

`operation.py` is one call with its answer, `checker.py` searches for the order, and each model says what one key does:
`models.py`. `sequential.py` holds the weaker promise of reads that a broker serves from its own copy of the metadata.
"""
