"""Settings for the whole suite."""

import pytest
from hypothesis import settings

# Compiled code loads on first use, so a deadline would measure the machine instead of the code.
settings.register_profile("twinsieve", deadline=None, max_examples=100)
settings.load_profile("twinsieve")

BROKER_FIXTURES = frozenset({"broker", "topics", "own_cluster"})
PROGRAM_FIXTURES = frozenset({"browser", "helm", "tools"})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "broker: needs a Kafka broker; set on every test that uses its fixtures")
    config.addinivalue_line("markers", "programs: needs Chromium, Prometheus or Helm; set on every test that uses them")


@pytest.hookimpl(tryfirst=True)  # before `-m "not broker"` is evaluated
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if BROKER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.broker)
        if PROGRAM_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.programs)
