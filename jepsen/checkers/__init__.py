"""What a history or a cluster must satisfy: pure functions that name what does not hold."""
