"""An authority of one's own and certificates for the server, so that clients which insist on TLS can be tested.

The authority stays in a folder, for clients to trust; a server's certificate and key live as long as the server.
"""

import contextlib
import datetime
import fcntl
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.core.errors import EnvironmentNotReady, UsageError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

NAMES = ("localhost", "server", "127.0.0.1", "::1")
"""Whom a certificate is for; ``server`` is the server's name in a testbed."""

CA_DAYS = 3650
LEAF_DAYS = 90
SPARE_DAYS = 30
"""An authority that expires sooner than this is made anew."""

_SLACK = datetime.timedelta(days=1)
"""Certificates are valid since yesterday: a client's clock may be slow."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Who signs the server's certificates."""

    certificate: "x509.Certificate"
    key: "EllipticCurvePrivateKey"
    path: Path
    """The certificate, PEM: what SSL_CERT_FILE names."""


def authority(folder: Path) -> Authority:
    """The folder's authority; made where there is none, or none that lasts.

    Args:
        folder: ``ca.pem`` and, readable by its owner alone, ``ca.key``. Servers may share it, at the same time too.

    Raises:
        EnvironmentNotReady: cryptography is not installed.
        UsageError: the folder cannot be written, or holds something else under these names.
    """
    _require()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(folder):
            return _read(folder) or _make(folder)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{folder} cannot hold an authority: {error}", fix="name another folder") from error


def server_context(by: Authority, names: Sequence[str] = ()) -> ssl.SSLContext:
    """TLS for a server.

    Args:
        by: Who signs.
        names: Host names and addresses beside ``NAMES``.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory() as private:  # mode 700; OpenSSL takes keys from files only
        chain = Path(private) / "server.pem"
        _write(chain, _leaf(by, tuple(dict.fromkeys((*NAMES, *names)))), 0o600)
        context.load_cert_chain(chain)
    return context


def _require() -> None:
    try:
        import cryptography  # noqa: F401 - whether it is there
    except ImportError as error:
        raise EnvironmentNotReady("wss needs cryptography.", fix="pip install cryptography") from error


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(folder: Path) -> Authority | None:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    path, key_path = folder / "ca.pem", folder / "ca.key"
    if not (path.exists() and key_path.exists()):
        return None
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    key = load_pem_private_key(key_path.read_bytes(), None)
    if not isinstance(key, EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise ValueError("ca.key is not the key of ca.pem")
    if certificate.not_valid_after_utc < _now() + datetime.timedelta(days=SPARE_DAYS):
        return None
    return Authority(certificate, key, path)


def _make(folder: Path) -> Authority:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("blackhole-lab session server CA")
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        _begun(name, name, key, CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(own, critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(folder / "ca.key", _pem(key), 0o600)
    _write(folder / "ca.pem", certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    return Authority(certificate, key, folder / "ca.pem")


def _leaf(by: Authority, names: Sequence[str]) -> bytes:
    """Certificate and key of a server, PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    key = ec.generate_private_key(ec.SECP256R1())
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(by.key.public_key())
    certificate = (
        _begun(_name("blackhole-lab session server"), by.certificate.subject, key, LEAF_DAYS)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(signer, critical=False)
        .sign(by.key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + _pem(key)


def _begun(
    subject: "x509.Name", issuer: "x509.Name", key: "EllipticCurvePrivateKey", days: int
) -> "x509.CertificateBuilder":
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - _SLACK)
        .not_valid_after(_now() + datetime.timedelta(days=days))
    )


def _usage(*, signs: bool) -> "x509.KeyUsage":
    from cryptography import x509

    others = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"), False
    )
    return x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, decipher_only=False, **others
    )


def _name(common: str) -> "x509.Name":
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])


def _general(name: str) -> "x509.GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, content: bytes, mode: int) -> None:
    """All of it or nothing, and never readable by others in between."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as out:
        out.write(content)
    fresh.replace(path)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
