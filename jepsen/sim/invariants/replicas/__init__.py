"""What must hold of the replicas of a partition: their logs, what they acknowledge and what they answer."""
