"""The classes that Spark calls: what it reads, streams and writes, by what this pyspark can do."""
