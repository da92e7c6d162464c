"""The library's exceptions, wrapped as it wraps them, become ours."""

import re

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
def test_permanent_errors_are_recognised(error: Exception, kind: type[TwinsieveError]) -> None:
    """However the error is wrapped, ours has the right class and is not retryable."""
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
def test_transient_errors_are_not_permanent(error: Exception) -> None:
    """None of these is reported as permanent."""
    assert permanent_error(error, "to write") is None


def test_the_last_error_of_a_producer_counts() -> None:
    """A failed producer raises plain errors; the last error it keeps gives the reason."""
    found = permanent_error(errors.KafkaError("plain"), "to write", errors.ClusterAuthorizationFailedError("x"))
    assert isinstance(found, NotAuthorisedError)


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        (errors.GroupAuthorizationFailedError("g"), "Read on the group g: .*--operation Read --group g$"),
        (
            errors.TopicAuthorizationFailedError({"b", "a"}),
            "Write on the topic a, b: .*--operation Write --topic a --topic b$",
        ),
        (
            errors.TransactionalIdAuthorizationFailedError(),
            "transactional id t: .*--operation Write --operation Describe --transactional-id t$",
        ),
        (errors.GroupAuthorizationFailedError("my group"), "--group 'my group'$"),
        (errors.ClusterAuthorizationFailedError("x"), "on the cluster"),
        (
            errors.KafkaError(
                "Unexpected error in InitProducerIdResponse: [Error 31] ClusterAuthorizationFailedError"
            ),  # of a producer without transactions whose user may write to no topic
            "grant the user Write on that topic: .*--operation Write --topic TOPIC$",
        ),
    ],
)
def test_a_refusal_names_the_resource_and_the_command_that_grants_it(reason: Exception, says: str) -> None:
    """It is one line, which can be copied."""
    found = permanent_error(errors.KafkaError("wrapped", reason), "to write", needs="Write", transactional_id="t")
    assert isinstance(found, NotAuthorisedError)
    assert re.search(says, str(found))
    assert "\n" not in str(found)
