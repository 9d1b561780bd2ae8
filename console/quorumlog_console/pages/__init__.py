"""The pages, one file each: what it reads, and the template that shows it."""
