"""What outlives a task or a query in Spark's own processes: connections, a Java, garbage left alone."""
