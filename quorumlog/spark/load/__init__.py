"""`quorumlog spark load`: topics into a folder of Parquet files, again and again, each offset once.

In the order of the data: names and records (what the folder holds), choosing (what a load reads), protocol (in which
order it writes; all four pure), store (a directory) and object_store, parquet (the files of a range), driving (the
protocol against a store), looking (what the cluster says), work (one range, in a worker), delta (a table), job (the
whole, in Spark), verifying.
"""
