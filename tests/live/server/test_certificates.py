"""The authority is made once, stays private, and signs for the names that clients use."""

import contextlib
import datetime
import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest
from cryptography import x509

from lab.core.errors import UsageError
from lab.live.server import certificates


def shake(context: ssl.SSLContext, trust: Path, name: str) -> dict[str, object]:
    """The certificate that a client which trusts the authority gets."""
    near, far = socket.socketpair()
    with near, far:
        far.settimeout(5)
        near.settimeout(5)
        server = threading.Thread(target=lambda: context.wrap_socket(far, server_side=True).close())
        server.start()
        try:
            client = ssl.create_default_context(cafile=str(trust))
            with client.wrap_socket(near, server_hostname=name) as opened:
                return dict(opened.getpeercert() or {})
        finally:
            server.join(5)


@pytest.mark.parametrize("name", ["localhost", "server", "127.0.0.1", "::1", "live.example", "192.0.2.7"])
def test_a_client_that_checks_names_accepts_the_server(tmp_path: Path, name: str) -> None:
    by = certificates.authority(tmp_path / "ca")

    assert shake(certificates.server_context(by, ["live.example", "192.0.2.7"]), by.path, name)


def test_another_name_is_not_accepted(tmp_path: Path) -> None:
    by = certificates.authority(tmp_path)
    context = certificates.server_context(by)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trust = ssl.create_default_context(cafile=str(by.path))
    client = trust.wrap_bio(to_client, to_server, server_hostname="other")
    server = context.wrap_bio(to_server, to_client, server_side=True)

    def handshake() -> None:
        while True:
            for end in (client, server):
                with contextlib.suppress(ssl.SSLWantReadError):
                    end.do_handshake()

    with pytest.raises(ssl.SSLCertVerificationError, match="other"):
        handshake()


def test_what_is_private_is_the_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "ca"
    certificates.server_context(certificates.authority(folder))

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {"ca.pem": 0o644, "ca.key": 0o600, "lock": 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_servers_that_begin_at_once_share_one_authority(tmp_path: Path) -> None:
    found: list[int] = []

    def begin() -> None:
        found.append(certificates.authority(tmp_path).certificate.serial_number)

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert len(found) == 8
    assert len(set(found)) == 1


def test_an_authority_that_expires_soon_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "CA_DAYS", certificates.SPARE_DAYS - 1)
    old = certificates.authority(tmp_path).certificate.serial_number
    monkeypatch.undo()

    new = certificates.authority(tmp_path).certificate

    assert new.serial_number != old
    assert new.not_valid_after_utc > datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3000)


def test_strict_verification_finds_what_it_wants(tmp_path: Path) -> None:
    """Python 3.13 checks by RFC 5280 to the letter: key identifiers and usages."""
    by = certificates.authority(tmp_path)
    leaf = x509.load_pem_x509_certificate(certificates._leaf(by, certificates.NAMES))

    assert by.certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    authority = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    own = by.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert authority.key_identifier == own.digest


def test_a_folder_with_something_else_in_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("hello")
    (tmp_path / "ca.key").write_text("hello")

    with pytest.raises(UsageError, match="cannot hold an authority"):
        certificates.authority(tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(UsageError, match="cannot hold an authority"):
        certificates.authority(tmp_path / "file")
