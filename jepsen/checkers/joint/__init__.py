"""What checkers of joint transactions look at (decision 112)."""
