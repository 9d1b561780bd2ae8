"""The replicas of this broker: which there are, how they are stepped, opened and made ready to lead.

`placements.py` turns metadata into replicas, `stepper.py` steps their cores and hands the effects to subscribers,
`leaderships.py` opens a log and makes it ready for an epoch, `leadership_listeners.py` reports leaderships to others.
The room may use `logdirs`, `delayed` and `partition`; produce, fetch and replication build on it. Begin with
`replica.py` and `stepper.py`.
"""
