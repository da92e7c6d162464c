"""Which client options an operator may set, what type each has, and what Java and librdkafka call them.

Only options of the connection, which mean the same to producer, consumer and admin client: how records are read and
written decides over exactly-once and is ours. A test holds the list against the client library's own.
"""

from collections.abc import Mapping

__all__ = ["ALIASES", "OURS", "TYPES"]

TYPES: Mapping[str, type] = {
    "client_dns_lookup": str,
    "client_id": str,
    "connections_max_idle_ms": int,
    "metadata_max_age_ms": int,
    "proxy_url": str,
    "receive_buffer_bytes": int,
    "reconnect_backoff_max_ms": int,
    "reconnect_backoff_ms": int,
    "request_timeout_ms": int,
    "bootstrap_timeout_ms": int,
    "sasl_kerberos_domain_name": str,
    "sasl_kerberos_name": str,
    "sasl_kerberos_service_name": str,
    "sasl_mechanism": str,
    "sasl_plain_password": str,
    "sasl_plain_username": str,
    "security_protocol": str,
    "send_buffer_bytes": int,
    "ssl_cafile": str,
    "ssl_certfile": str,
    "ssl_check_hostname": bool,
    "ssl_crlfile": str,
    "ssl_keyfile": str,
    "ssl_password": str,
}

# Java's and librdkafka's names, dots as underscores. Stores must be PEM, which Java calls ssl.truststore.type=PEM.
ALIASES: Mapping[str, str] = {
    "sasl_mechanisms": "sasl_mechanism",
    "sasl_password": "sasl_plain_password",
    "sasl_username": "sasl_plain_username",
    "ssl_ca_location": "ssl_cafile",
    "ssl_certificate_location": "ssl_certfile",
    "ssl_crl_location": "ssl_crlfile",
    "ssl_key_location": "ssl_keyfile",
    "ssl_key_password": "ssl_password",
    "ssl_keystore_location": "ssl_certfile",
    "ssl_truststore_location": "ssl_cafile",
}

# Known to every client, and set by us: named so that the refusal can say so.
OURS = frozenset(
    {
        "acks",
        "allow_auto_create_topics",
        "auto_offset_reset",
        "batch_size",
        "bootstrap_servers",
        "compression_type",
        "delivery_timeout_ms",
        "enable_auto_commit",
        "enable_idempotence",
        "fetch_max_bytes",
        "fetch_max_wait_ms",
        "fetch_min_bytes",
        "group_id",
        "group_instance_id",
        "heartbeat_interval_ms",
        "isolation_level",
        "linger_ms",
        "max_in_flight_requests_per_connection",
        "max_partition_fetch_bytes",
        "max_poll_interval_ms",
        "max_poll_records",
        "max_request_size",
        "metrics_enabled",
        "partition_assignment_strategy",
        "retries",
        "retry_backoff_ms",
        "session_timeout_ms",
        "transaction_timeout_ms",
        "transactional_id",
    }
)
