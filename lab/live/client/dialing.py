"""Which link an assistant connects with."""

import ssl
from collections.abc import Callable

from lab.core.errors import EnvironmentNotReady
from lab.live.client.link import Ears, Link
from lab.live.client.options import Options, endpoint
from lab.live.client.wire_link import WireLink


def dialer(options: Options) -> Callable[[Ears], Link]:
    """Makes links, as the options say.

    Raises:
        EnvironmentNotReady: google-genai is wanted and not installed, or the certificate cannot be read.
    """
    if options.adapter == "google-genai":
        try:
            from lab.live.client.google_genai import genai_dialer
        except ModuleNotFoundError as error:
            raise EnvironmentNotReady("google-genai is not installed.", fix="pip install google-genai") from error
        return genai_dialer(options, None if options.ca is None else trust(options))
    url = endpoint(options.url)
    context = trust(options) if url.startswith("wss:") else None
    return lambda ears: WireLink(url, ears, ssl=context)


def trust(options: Options) -> ssl.SSLContext:
    """What to trust: the given certificate, else the system's and that of ``SSL_CERT_FILE``.

    Raises:
        EnvironmentNotReady: it is no certificate.
    """
    try:
        return ssl.create_default_context(cafile=options.ca)
    except (ssl.SSLError, OSError) as error:
        raise EnvironmentNotReady(
            f"The certificate {options.ca} cannot be used: {error}.", fix="--ca with the ca.pem that the server wrote"
        ) from error
