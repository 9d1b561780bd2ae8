"""Compaction: of each key, keep the newest record. Offsets and order never change (Kafka's `Cleaner`).

Read in the order of the data's way:

- `spec.py`: what a round is asked to do, and what it answers. Plain values: they cross a process boundary.
- `outcomes.py`: which transactions were aborted.
- `offset_map.py`, `key_index.py`: pass 1, the newest offset of each key.
- `retention.py`: the rules. `batch_filter.py`: pass 2, one batch after the other.
- `grouping.py`, `output.py`, `round.py`: which segments become one, their files, and a round as a generator of steps.
- `swap.py`: what the log's writer does with a finished group; `swap_files.py`: what a start makes of a crash in it.

A round reads live segments and writes files that end in `.cleaned`, and nothing else. It may run in another process.
"""
