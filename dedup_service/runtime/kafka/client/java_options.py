"""Options as Java's clients have them, where more than the name differs from ours.

- `sasl.jaas.config` holds user and password: `…ScramLoginModule required username="a" password="b";`
- stores of certificates are files in PEM (`ssl.truststore.type=PEM`); JKS and PKCS12 are for Java alone.
- an empty `ssl.endpoint.identification.algorithm` switches the check of the host name off.
"""

import re
from collections.abc import Mapping

from dedup_service.runtime.kafka.client.errors import OptionError

__all__ = ["from_java"]

_JAAS, _ENDPOINT = "sasl_jaas_config", "ssl_endpoint_identification_algorithm"
_IN_JAAS = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_STORE_TYPES = ("ssl_truststore_type", "ssl_keystore_type")
_ONLY_JAVA = ("ssl_truststore_password", "ssl_keystore_password")


def from_java(options: Mapping[str, str]) -> dict[str, str]:
    """Return `options` (names with underscores) with Java's special ones replaced by ours; OptionError where not."""
    left = dict(options)
    for name in _STORE_TYPES:
        kind = left.pop(name, "PEM")
        if kind.upper() != "PEM":
            raise OptionError(f"client option {name} is {kind}: only PEM files are read here; export the store as PEM")
    for name in _ONLY_JAVA:
        if left.pop(name, ""):
            raise OptionError(f"client option {name} belongs to a Java store: export the store as a PEM file")
    if _JAAS in left:
        left = {**_credentials(left.pop(_JAAS)), **left}
    if _ENDPOINT in left:
        left = {"ssl_check_hostname": str(bool(left.pop(_ENDPOINT))), **left}
    return left


def _credentials(jaas: str) -> dict[str, str]:
    found = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _IN_JAAS.findall(jaas)}
    if set(found) != {"username", "password"}:
        raise OptionError("client option sasl_jaas_config names no username and password in double quotes")
    return {"sasl_plain_username": found["username"], "sasl_plain_password": found["password"]}
