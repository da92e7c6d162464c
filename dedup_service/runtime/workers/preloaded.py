"""Imported by the fork server alone: loads what every worker of the usual space needs.

Workers are forks of the fork server. They share the tables that it has loaded, and are ready at once instead of after a
second of processor time each. This is the one module that works at import time: multiprocessing lets a fork server do
no more. A worker whose space is another one loads its tables itself; so does one for which loading fails here, and then
it can report the error.
"""

import gc
from contextlib import suppress

from dedup_service.runtime.workers.preparation import get_ready

with suppress(Exception):
    get_ready(None)
    gc.freeze()  # a collection in a worker would otherwise write to every shared page
