"""A temporary certificate authority for a test, and a certificate signed by it for 127.0.0.1 and localhost.

Uses `cryptography`, a dependency of Scrapy.
"""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_VALID = dt.timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Certificates:
    """`ca`: PEM file that clients trust; `broker`: PEM file with the brokers' key and certificate chain."""

    ca: Path
    broker: Path


def make_certificates(folder: Path, address: str) -> Certificates:
    """Write both PEM files into `folder`; the broker's is valid for the IP `address` and for localhost."""
    ca_key, broker_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("twinsieve test authority")
    ca = (
        _certificate(ca_name, ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(address))]
    broker = (
        _certificate(_name("localhost"), ca_name, broker_key.public_key())
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    files = Certificates(ca=folder / "ca.pem", broker=folder / "broker.pem")
    files.ca.write_bytes(_pem(ca))
    files.broker.write_bytes(_key_pem(broker_key) + _pem(broker) + _pem(ca))
    return files


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + _VALID)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
