"""The token that opens a dashboard to other machines, and whether one is needed."""

import hashlib
import hmac
import ipaddress
import os

from dedup_service.core.errors import ConfigurationError
from dedup_service.faces.http.address import Address

__all__ = ["HOW_TO", "VARIABLE", "Token", "is_loopback", "token_for"]

VARIABLE = "TWINSIEVE_DASHBOARD_TOKEN"
LEAST = 16
HOW_TO = 'python -c "import secrets; print(secrets.token_urlsafe())"'


class Token:
    """A secret, compared in constant time. cookie: what a browser that has shown it carries instead."""

    def __init__(self, text: str) -> None:
        self._digest = _digest(text)
        self.cookie = hmac.new(text.encode(), b"twinsieve dashboard cookie", hashlib.sha256).hexdigest()

    def is_given(self, text: str) -> bool:
        """Whether `text` is the secret."""
        return hmac.compare_digest(_digest(text), self._digest)

    def is_cookie(self, text: str) -> bool:
        """Whether `text` is the cookie."""
        return hmac.compare_digest(_digest(text), _digest(self.cookie))


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to `host`.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token_for(address: Address, given: str | None, *, name: str = "--dashboard-token") -> Token | None:
    """Return the token for a dashboard at `address`: `given`, or the environment's; None on loopback without one.

    name: of the setting, for messages. ConfigurationError where one is needed, or this one is too short to be a secret.
    """
    text = given or os.environ.get(VARIABLE) or None
    if text is None:
        if is_loopback(address.host):
            return None
        raise ConfigurationError(
            f"a dashboard at {address} can be reached from other machines, so it needs a token: make one with {HOW_TO} "
            f"and give it as {VARIABLE} (or {name}); or leave the host out, then only this machine can connect"
        )
    if len(text) < LEAST or not text.isascii() or not text.isprintable():
        raise ConfigurationError(
            f"the dashboard's token has {len(text)} characters, at least {LEAST} of ASCII make one: {HOW_TO}"
        )
    return Token(text)


def _digest(text: str) -> bytes:
    """Of equal length whatever was given, so that a comparison tells nothing of the secret's length either."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
