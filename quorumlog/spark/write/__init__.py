"""Writes of the format `quorumlog`: `df.write` and `df.writeStream`.

In the order of the data: options and columns (judged on the driver, before anything is sent), topics (a batch of rows
by topic), task (in the worker: sends a task's rows by a producer that it is given), sender (that producer), message
(what a task tells the driver), sink (called by Spark).
"""
