"""The log engine, for partitions and for the quorum's metadata log. Pure but for `edge/`, which touches the machine.

From the ground up: `files` is the seam to a disk; `segment` one segment with its indexes; `rules` pure decisions;
`producers` what a log knows of its producers; `recovery` opens a log again; `log` is the log; `directory` owns the
files of partitions; `writer` changes them turn by turn. `cleaning`, `retention`, `moves`, `checks`, `foreign` and
`audit` work on logs. A room imports only rooms below it; import-linter holds it. The package may import quorumlog's
records, ids and errors. Begin with `log/log.py`.
"""
