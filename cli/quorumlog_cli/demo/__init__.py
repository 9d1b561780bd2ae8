"""`./dev demo`: a cluster, a real data set, a killed leader, Spark's result, and the proof that it is right.

Modules in the order of the data: flights (the CSV), load (into the topic, while `fault` kills the leader), spark (reads
the topic), check (every row and every figure), chart and page (for people). `__main__` runs them.
"""
