"""Coordinators: who is in a group, how far it has read, and which transactions are open.

A partition of an internal topic is the log of one coordinator. Its core decides, writes records, and changes durable
state only by replaying them, so that the next leader of the partition goes on where this one stopped. The cores here
are sans-IO: they take calls, the time and the high watermark, and give records and answers.
"""
