"""What the admin client carries out in more than one call, and what it answers with."""
