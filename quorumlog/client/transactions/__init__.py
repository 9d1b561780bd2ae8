"""Transactions of a producer (KIP-98, KIP-447, KIP-890, KIP-1050).

`machine.py` decides and does no I/O; `verdicts.py` says what an error code means; `errors.py` what the application is
told. Shells: `coordinators.py` (whom to ask), `driver.py` (asks, waits, repeats), `scope.py` (the `with` block).
"""
