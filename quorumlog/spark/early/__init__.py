"""A folder for the PYTHONPATH of Spark's Python processes (quorumlog/spark/python_path.py)."""
