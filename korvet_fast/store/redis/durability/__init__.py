"""What a server promises of what it was sent, and waiting for it."""
