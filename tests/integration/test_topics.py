"""Topics on a real broker."""

from dedup_service.runtime.kafka.topics import check, create, describe


def test_the_set_that_create_makes_passes_check(broker, topics):
    """What `create` makes is what `check` wants, in every topic."""
    assert check(broker.connection, topics) == []
    assert [fact.name for fact in describe(broker.connection, topics)] == list(topics.all)
    assert not any(made.created for made in create(broker.connection, topics))
