"""HTTP clients for servers on loopback."""

import ssl

import httpx2

# Loading the certificates of the system takes a tenth of a second for each client, and
# nothing on loopback speaks TLS.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def loopback_client(
    *, base_url: str = "", limits: httpx2.Limits | None = None
) -> httpx2.AsyncClient:
    """A client that honours no proxy and gives up after a few seconds."""
    return httpx2.AsyncClient(
        base_url=base_url,
        trust_env=False,
        verify=NO_CERTIFICATES,
        timeout=10,
        limits=httpx2.Limits() if limits is None else limits,
    )
