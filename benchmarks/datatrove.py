"""Claim: `twinsieve filter` judges a Parquet file in one pass in less time than datatrove's MinHash pipeline.

    python -m benchmarks.datatrove FILE.parquet [--python VENV/bin/python] [--core 0]

FILE has the columns `id`, `url` and `text`. VENV is an environment of its own with datatrove and what its words need
(`pip install 'datatrove[io]' 'xxhash<4' tokenizers spacy jieba`): its dependencies differ from ours; without it ours
runs alone. Both run on one core (taskset), in turn. datatrove reads with its ParquetReader and runs its four steps
(signatures, buckets, clusters, filter) with its usual settings (14 buckets of 8 hashes, 5-grams of words), one task
each, and writes the kept pages as JSON lines; once it reads only. Its words are those of --language.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = """
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig, MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter,
)
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers.jsonl import JsonlWriter

source, work, language, what = sys.argv[1:]
reader = lambda: ParquetReader(source, text_key="text", id_key="id")
config = MinhashConfig(num_buckets=14, hashes_per_bucket=8)
pages = lambda data, rank=0, world_size=1: iter([sum(1 for _ in data)] and [])
steps = {
    "read": [[reader(), pages]],
    "minhash": [
        [reader(), MinhashDedupSignature(f"{work}/signatures", config=config, language=language)],
        [MinhashDedupBuckets(f"{work}/signatures", f"{work}/buckets", config=config)],
        [MinhashDedupCluster(f"{work}/buckets", f"{work}/remove", config=config)],
        [reader(), MinhashDedupFilter(f"{work}/remove"), JsonlWriter(f"{work}/kept", compression=None)],
    ],
}[what]
for number, pipeline in enumerate(steps):
    tasks = config.num_buckets if number == 1 else 1
    LocalPipelineExecutor(pipeline, tasks=tasks, workers=1, logging_dir=f"{work}/logs-{number}").run()
"""


def seconds(command: list[str], core: int) -> float:
    """Return how long a command takes on one core."""
    began = time.monotonic()
    done = subprocess.run(["taskset", "-c", str(core), *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[:2]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return time.monotonic() - began


def main() -> int:
    """Measure; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--python", help="of the environment that has datatrove; without it only ours runs")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--language", default="cmn_Hani")
    parser.add_argument("--repeats", type=int, default=1)
    arguments = parser.parse_args()
    import pyarrow.parquet as pq

    pages = pq.ParquetFile(arguments.file).metadata.num_rows
    for _ in range(arguments.repeats):
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            verdicts, kept = work / "verdicts.jsonl", work / "kept.jsonl"
            ours = [sys.executable, "-m", "dedup_service.interfaces.cli", "filter", str(arguments.file)]
            taken = {"twinsieve": seconds([*ours, "-o", str(verdicts), "--kept", str(kept), "-q"], arguments.core)}
            for what in ("read", "minhash") if arguments.python else ():
                step = [arguments.python, "-c", STEPS, str(arguments.file), str(work / what), arguments.language, what]
                taken[f"datatrove, {what}"] = seconds(step, arguments.core)
            left = sum(1 for path in (work / "minhash" / "kept").rglob("*.jsonl") for _ in path.open("rb"))
            own = sum(1 for _ in kept.open("rb"))
        figures = {what: {"seconds": round(one, 1), "pages/s": round(pages / one)} for what, one in taken.items()}
        print(json.dumps({"pages": pages, "kept": {"twinsieve": own, "datatrove": left}, **figures}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
