"""A consumer as a member of a group.

`membership.py` decides and does no I/O: it joins, syncs, sends heartbeats and gives up what it lost;
`consumer_membership.py` does so in the consumer protocol, and `member_core.py` is what both share. The leader of a
group shares partitions by `assignors.py`, `sticky.py` and `racks.py`. `session.py` carries the calls out, `commits.py`
writes and reads offsets. `AsyncConsumer` is what an application sees. Begin with `membership.py`.
"""
