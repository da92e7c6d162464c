"""Run the benchmarks that need no data of their own: `python -m benchmarks`, or `make bench`."""

import runpy

for name in ("verdict", "index"):
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")
