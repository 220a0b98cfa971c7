"""Certificates made for one run: an authority and what it signed for 127.0.0.1."""

from pathlib import Path
from typing import NamedTuple

import trustme


class Certificates(NamedTuple):
    """Files in PEM: whom to trust, what a server shows, and its key."""

    authority: Path
    certificate: Path
    key: Path


def make_certificates(directory: Path) -> Certificates:
    """An authority and a server's certificate for 127.0.0.1 and localhost, written into `directory`."""
    made = Certificates(*(directory / name for name in ("authority.pem", "server.pem", "server.key")))
    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(made.authority)
    server.cert_chain_pems[0].write_to_path(made.certificate)
    server.private_key_pem.write_to_path(made.key)
    return made
