"""One log: acquiring it, appending, reading, taking away."""
