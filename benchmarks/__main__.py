"""Run the benchmarks that need no external data: `python -m benchmarks`, or `make bench`.

The benchmarks of real pages take a folder or a file and are run by name: `python -m benchmarks.quality DIR`
(`make quality`), `python -m benchmarks.crawl DIR`, and `python -m benchmarks.fingerprint --pages FILE --html
DIR`.
"""

import runpy

for name in ("fingerprint", "index"):
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")
