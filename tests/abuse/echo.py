"""A server that says what it hears, in a process of its own: what it takes long for, the machine took long for."""

import socket
from contextlib import suppress


def main() -> None:
    """Print the port, serve one connection until it ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener, suppress(ConnectionResetError):
        print(listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
        with connection:
            while data := connection.recv(1000):
                connection.sendall(data)


if __name__ == "__main__":
    main()
