"""One partition: its log, its producers, its leader epochs, how far it is durable, and whether this broker leads it."""
