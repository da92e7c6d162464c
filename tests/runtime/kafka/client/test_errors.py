"""The client's exceptions, wrapped as it wraps them, become ours."""

import pytest
from kafka import errors

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.runtime.kafka.client.errors import NotAuthorisedError
from dedup_service.runtime.kafka.client.retry import permanent_error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.TopicAuthorizationFailedError("pages"), NotAuthorisedError),
        (
            errors.KafkaError("Cannot perform send", errors.TransactionalIdAuthorizationFailedError()),
            NotAuthorisedError,
        ),
        (errors.SaslAuthenticationFailedError("no"), NotAuthorisedError),
        (errors.KafkaError("Unexpected error: [Error 50] InvalidTransactionTimeoutError"), ConfigurationError),
        (errors.KafkaConfigurationError("x"), ConfigurationError),
    ],
)
def test_what_no_second_try_changes(error: Exception, kind: type[TwinsieveError]) -> None:
    """Whatever it is wrapped in, it is told as what it is, and not to be retried."""
    found = permanent_error(error, "to write")
    assert isinstance(found, kind)
    assert not found.retryable


@pytest.mark.parametrize(
    "error",
    [
        errors.KafkaConnectionError("x"),
        errors.KafkaError("plain"),
        errors.ProducerFencedError(),
        errors.FencedInstanceIdError(),
        OSError("x"),
    ],
)
def test_what_may_pass(error: Exception) -> None:
    """Nothing is said to be for good."""
    assert permanent_error(error, "to write") is None


def test_the_reason_may_come_from_the_producer() -> None:
    """A failed producer answers with plain errors; what it remembers as its last one says more."""
    found = permanent_error(errors.KafkaError("plain"), "to write", errors.ClusterAuthorizationFailedError("x"))
    assert isinstance(found, NotAuthorisedError)
