"""What the commands do, one file for those that belong together."""
