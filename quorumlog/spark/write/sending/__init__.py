"""One task's rows on their way: as columns, in producers, and what the driver is told of them."""
