"""A request's whole way through the broker, without sockets and disks: bytes in, bytes out."""
