"""A web server on this machine, with a certificate that this process trusts."""

from __future__ import annotations

import datetime
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOST = "localhost"


@dataclass
class Web:
    """The server.

    Attributes:
        port: where it listens.
        files: what it serves, by name.
        moved: addresses to which it sends on, by name.
        breaks: bytes after which the next answers end too early, one for each answer.
        ranges: the ranges that were asked for, in order; "" for a whole file.
        resumes: whether it goes on within a file. refuses: whether it answers 416 if asked to.
    """

    port: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    breaks: list[int] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    resumes: bool = True
    refuses: bool = False

    def url(self, name: str) -> str:
        """The address of a file."""
        return f"https://{HOST}:{self.port}/{name}"


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Web, Path]]:
    """A server, and the file of its certificate, which `folder` gets."""
    web = Web()
    certificate, key = _certificate(folder)
    server = ThreadingHTTPServer((HOST, 0), _handler(web))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    web.port = server.server_address[1]
    thread = threading.Thread(target=lambda: server.serve_forever(0.01))
    thread.start()
    try:
        yield web, certificate
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path[1:]
            if name in web.moved:
                self.send_response(302)
                self.send_header("Location", web.moved[name])
                self.end_headers()
                return
            asked = self.headers.get("Range", "")
            web.ranges.append(asked)
            if asked and web.refuses:
                self.send_error(416)
                return
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and web.resumes else 0
            content = web.files[name][start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: web.breaks.pop(0)] if web.breaks else content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine that signs itself, and its key, as files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, secret
