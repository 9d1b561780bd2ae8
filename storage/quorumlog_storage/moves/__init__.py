"""Moving a partition's log from one log directory of a broker to another one (KIP-113).

The copy is a *future log*, `<topic>-<partition>.<32 hex digits>-future`. In the order of its life:

- `future_log.py`: the copy itself; it is made, filled, cut and deleted like a follower's log
- `steps.py`: what to do next so that it becomes equal to its source, as a pure function
- `promotion.py`: the exchange of the two; says what a crash leaves at each point
- `mark.py`: the file that says that a future log was complete
- `fates.py`: what a start makes of a future log that it finds, as a pure function

`quorumlog_broker/moves/` decides when; nothing here knows a clock, a thread or a loop.
"""
