"""The check of logs in the background: every closed segment is read once in a while, and its indexes are compared.

`schedule.py` decides when a pass begins and how fast it goes, without a clock; `report.py` remembers what was found;
`scrub.py` performs. What is compared with what is `quorumlog_storage/checks/segment_check.py`.
"""
