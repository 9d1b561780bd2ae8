"""One replica's decisions and its state in memory. Pure: no I/O, no clock, no other room.

`partition.py` is the core: events in, effects out (`events.py` lists both). It decides leadership, the ISR, the high
watermark and the low watermark. Beside it: the state of the ISR (`isr_agreement.py`, `isr_state.py`), the progress of
followers, the queued batches of idempotent producers, and the tail of recent batches. Begin with `events.py`.
"""
