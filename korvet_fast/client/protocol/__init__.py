"""The client's side of Kafka's protocol without I/O: a driver moves the bytes, for asyncio or for blocking sockets."""
