"""Real servers on loopback with certificates of a throw-away authority: HTTPS and SMTP."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def write_certificate(directory: Path, *names: str) -> Path:
    """Write a self-signed certificate for these names, with its key, as one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / f"{names[0]}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    return path


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


class WebServer:
    """An HTTPS server that answers by a table of paths, and keeps the requests that came."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.domain = f"localhost:{port}"
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.drops: set[str] = set()
        """Paths after whose request the connection ends without an answer."""
        self.raw: dict[str, bytes] = {}
        """Paths whose answers are these bytes."""
        self.pours: set[str] = set()
        """Paths whose answers are small pieces without an end."""


@contextmanager
def serve_web(certificate: Path) -> Iterator[WebServer]:
    """Run an HTTPS server on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            web.requests.append((self.command, self.path, dict(self.headers.items()), body))
            if self.path in web.drops:
                self.close_connection = True
                self.connection.close()
                return
            if self.path in web.raw:
                self.close_connection = True
                self.wfile.write(web.raw[self.path])
                return
            if self.path in web.pours:
                self.close_connection = True
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                with suppress(OSError):
                    while True:
                        self.wfile.write(b"a piece\n")
                return
            status, headers, content = web.answers.get(self.path, (404, {}, b"nothing here"))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer

        def log_message(self, *given: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *given: Any) -> None:
            """A connection that a test cuts is no news."""

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = server_context(certificate).wrap_socket(server.socket, server_side=True)
    web = WebServer(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class MailBox:
    """The messages that a mail server took."""

    def __init__(self) -> None:
        self.port = 0
        self.messages: list[tuple[str, list[str], bytes]] = []
        self.refuses = ""
        """The answer to every message, if it is not taken."""

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refuses == "drop":
            server.transport.abort()
            return ""
        if self.refuses:
            return self.refuses
        self.messages.append((envelope.mail_from, list(envelope.rcpt_tos), envelope.content))
        return "250 taken"


@contextmanager
def serve_mail(certificate: Path | None) -> Iterator[MailBox]:
    """Run a mail server on loopback, which demands STARTTLS if it has a certificate."""
    box = MailBox()

    class Plain(Controller):
        def factory(self) -> SMTP:
            context = None if certificate is None else server_context(certificate)
            return SMTP(box, tls_context=context, require_starttls=context is not None)

        def _trigger_server(self) -> None:
            # The library connects to the port that it was given. That was 0, for any free one.
            self.port = box.port = self.server.sockets[0].getsockname()[1]
            super()._trigger_server()

    controller = Plain(box, hostname="127.0.0.1", port=0)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()
