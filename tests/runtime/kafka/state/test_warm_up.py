"""Pages that are made up at the start load the machine code that deciding pages calls."""

import subprocess
import sys

_SCRIPT = """
from dedup_service.core import kernels
from dedup_service.runtime.kafka.control.operator_records import RequestedPolicy
from dedup_service.runtime.kafka.state import warm_up
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

fingerprinter = build_fingerprinter(SpaceOptions())
policy = RequestedPolicy(fingerprinter.space_id, None, None, None, may_be_lower=False).policy
assert warm_up.load_kernels(fingerprinter, policy) == sum(warm_up._BATCHES)


def loaded():
    return {kernel.py_func.__qualname__ for kernel in kernels._DEFINED if kernel.signatures}


before = loaded()
assert {"probe_few", "insert_few", "add_rows"} <= before, before
warm_up._BATCHES = (3, 1, 70, 2, 7, 25, 1)
warm_up.load_kernels(fingerprinter, policy)
assert loaded() == before, loaded() - before
"""


def test_no_kernel_is_loaded_after_the_start() -> None:
    """Batches of other sizes call the same kernels, those for few pages among them."""
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
