"""Redis's servers: their addresses, connections to them, commands sent until they are answered."""
