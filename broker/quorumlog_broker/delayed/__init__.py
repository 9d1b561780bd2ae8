"""Requests that wait: for a log's end, a high watermark or a low watermark, each with a deadline.

`purgatory.py` is the pure core; `operations.py` adds the clock and names the three queues of a broker. This room knows
partitions by key only; it may use `partition.key`. Others subscribe to it, to be woken as well. Begin with
`purgatory.py`.
"""
