"""Why no broker answers: one look at each address with plain sockets, as far as it gets.

The client reports a wrong password, a missing authority and a plaintext client on a TLS port alike. A look tells them
apart: does the name resolve, does something listen, is a TLS handshake possible, does it answer as a broker does.
Nothing secret is sent: the only request is ApiVersions, the first of every client.
"""

import socket
import ssl
import struct

from dedup_service.runtime.kafka.client.settings import Connection

__all__ = ["diagnose"]

_PATIENCE_S = 3.0
# ApiVersions, version 0, correlation id 1, client id "look": the same bytes since Kafka 0.10.
_BODY = struct.pack(">hhih", 18, 0, 1, 4) + b"look"
_REQUEST = struct.pack(">i", len(_BODY)) + _BODY
_TLS_ALERT = b"\x15\x03"


def diagnose(connection: Connection) -> str:
    """Return what is wrong at each address and what to check, for people."""
    options = connection.configs()
    return "; ".join(f"{server}: {_look(server, options)}" for server in connection.servers)


def _look(server: str, options: dict[str, object]) -> str:
    host, _, port = server.rpartition(":")
    address = (host.strip("[]"), int(port)) if host else (server, 9092)
    try:
        with socket.create_connection(address, _PATIENCE_S) as plain:
            if options.get("security_protocol", "PLAINTEXT") in {"SSL", "SASL_SSL"}:
                return _look_by_tls(plain, address[0], options)
            return _answer(plain)
    except socket.gaierror:
        return "the name does not resolve; check the address"
    except ConnectionRefusedError:
        return "nothing listens there; check address and port, or start the broker"
    except TimeoutError:
        return "no answer in time; check address and firewall, or whether the broker hangs"
    except OSError as error:
        return f"{error}; check the address"


def _look_by_tls(plain: socket.socket, host: str, options: dict[str, object]) -> str:
    try:
        context = _context(options)
    except (OSError, ssl.SSLError) as error:
        return f"the certificates in ssl_cafile or ssl_certfile cannot be loaded ({error}); check the files"
    try:
        with context.wrap_socket(plain, server_hostname=host) as secure:
            return _answer(secure)
    except ssl.SSLCertVerificationError as error:
        return (
            f"its certificate is not trusted ({error.verify_message}); give the authority's PEM file as ssl_cafile, "
            "and the name that the certificate is for as address"
        )
    except ssl.SSLError as error:
        if error.reason in {"WRONG_VERSION_NUMBER", "UNEXPECTED_MESSAGE", "RECORD_LAYER_FAILURE"}:
            return "it does not speak TLS; set security_protocol to PLAINTEXT or SASL_PLAINTEXT, or use its TLS port"
        return f"no TLS connection ({error.reason or error}); the brokers may ask for a client certificate"
    except ConnectionResetError:
        return "it closed the connection on a TLS greeting; it may not speak TLS: check port and security_protocol"


def _context(options: dict[str, object]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("ssl_cafile"))  # type: ignore[arg-type]
    context.check_hostname = bool(options.get("ssl_check_hostname", True))
    if options.get("ssl_certfile"):
        context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"), options.get("ssl_password"))  # type: ignore[arg-type]
    return context


def _answer(stream: socket.socket) -> str:
    """Ask what every broker answers before it asks who we are."""
    stream.settimeout(_PATIENCE_S)
    stream.sendall(_REQUEST)
    try:
        answer = stream.recv(8)
    except ConnectionResetError:
        answer = b""
    if answer.startswith(_TLS_ALERT) or not answer:
        return "it closed the connection; it may expect TLS: set security_protocol to SSL or SASL_SSL, and ssl_cafile"
    if len(answer) < 8 or answer[4:8] != _REQUEST[8:12]:
        return "what listens there is no Kafka broker; check the port"
    return (
        "a broker answers, and refuses what follows; check security_protocol (does it ask for a password: SASL_SSL or "
        "SASL_PLAINTEXT?), sasl_mechanism, user and password, and whether the addresses it advertises can be reached"
    )
