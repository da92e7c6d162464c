"""`twinsieve` whose services have durations and limits that no option has.

    python -m tests.impatient_serve serve …

The variable IMPATIENT_SERVE of the environment has the fields of `ServiceSettings` to change, as JSON.
"""

import json
import os
from typing import Any

from dedup_service.interfaces.cli.main import main
from dedup_service.runtime.kafka.service import ServiceSettings

VARIABLE = "IMPATIENT_SERVE"


def set_default(settings: Any, name: str, value: object) -> None:
    """Change the default of a keyword of a class in this process."""
    assert name in settings.__init__.__kwdefaults__
    settings.__init__.__kwdefaults__[name] = value


def be_impatient() -> None:
    """Change the settings of services as the variable says."""
    for name, value in json.loads(os.environ.get(VARIABLE, "{}")).items():
        set_default(ServiceSettings, name, value)


if __name__ == "__main__":
    be_impatient()
    main()
