"""A Redis server with TLS beside its plain port, and a user with the rights that docs/redis.md lists."""

import re
import shlex
import subprocess
from pathlib import Path

from redis_server import RedisServer, find_program, free_port
from requirement import require

PAGE = Path(__file__).parent.parent / "docs" / "redis.md"
USER, PASSWORD = "korvet", "a-password"


def make_certificates(place: Path) -> Path:
    """ca.pem, and signed by it server.pem (for 127.0.0.1, localhost), other.pem (for elsewhere), client.pem; keys."""
    openssl = require("openssl")

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=place, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test CA")
    for name, names in (("server", "IP:127.0.0.1,DNS:localhost"), ("client", "DNS:client"), ("other", "DNS:elsewhere")):
        (place / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        run("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext"]
        run("x509", "-req", "-in", f"{name}.csr", *signing, "-out", f"{name}.pem")
    return place


class TlsServer(RedisServer):
    """Redis of the distribution, which has TLS; takes certificates of the test's CA from clients, if they have any."""

    def __init__(self, directory: Path, certificates: Path, *, name: str = "server", **options: str | int) -> None:
        self.certificates = certificates
        self.tls_port = free_port()
        options |= {"tls_port": self.tls_port, "tls_ca_cert_file": str(certificates / "ca.pem")}
        options |= {
            "tls_cert_file": str(certificates / f"{name}.pem"),
            "tls_key_file": str(certificates / f"{name}.key"),
        }
        options.setdefault("tls_auth_clients", "optional")
        super().__init__(find_program("redis-distribution"), directory, **options)

    def tls_url(self, who: str = "", host: str = "127.0.0.1", **options: str) -> str:
        """`rediss://` with the CA, and further options of the URL."""
        given = {"ssl_ca_certs": str(self.certificates / "ca.pem")} | options
        return f"rediss://{who}{host}:{self.tls_port}?" + "&".join(f"{name}={value}" for name, value in given.items())

    def add_user(self) -> str:
        """A user with no more rights than docs/redis.md lists; returns what stands before the host in a URL."""
        (command,) = re.findall(r"redis-cli (ACL SETUSER (?:.*\\\n)*.*)", PAGE.read_text())
        self.call(*shlex.split(command.replace("\\\n", " ")))
        return f"{USER}:{PASSWORD}@"
