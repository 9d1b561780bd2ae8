"""What an operator does meanwhile: chores at topics, brokers, levels and voters."""
