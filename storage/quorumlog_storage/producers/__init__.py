"""What a log knows of its producers beyond their sequence numbers: transactions, their ends, and guards of them."""
