"""How partitions are read: positions, what is fetched ahead, how far the application has come."""
