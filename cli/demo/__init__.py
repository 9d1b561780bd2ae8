"""`./dev demo`: a cluster, a real data set, a killed leader, Spark's answer, and the proof that it is right.

The way of the data: flights (the CSV), load (into the topic, while `fault` kills the leader), spark (out of it again),
check (every row and every figure), chart and page (for people). `__main__` is the flow.
"""
