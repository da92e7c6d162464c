"""How many workers there are by default."""

import os
from pathlib import Path

import pytest

from dedup_service.runtime.workers import cores
from dedup_service.runtime.workers.cores import usable_cores


@pytest.mark.parametrize(
    ("group", "limits", "expected"),
    [
        ("0::/", {"": "200000 100000"}, 2),
        ("0::/", {"": "150000 100000"}, 2),
        ("0::/", {"": "10000 100000"}, 1),
        ("0::/", {"": "max 100000"}, 16),
        ("0::/", {"": "9900000 100000"}, 16),
        ("4:memory:/x\n0::/a.slice/b.service", {"a.slice/b.service": "max 100000", "a.slice": "300000 100000"}, 3),
        ("0::/a.slice/b.service", {"a.slice/b.service": "400000 100000", "a.slice": "max 100000"}, 4),
        ("0::/../elsewhere", {}, 16),
        ("0::/", {"": "nonsense"}, 16),
        ("0::/", {"": "1 0"}, 16),
        ("1:cpu:/", {}, 16),
        (None, {}, 16),
    ],
)
def test_a_limit_on_processor_time_is_one_on_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, group: str | None, limits: dict[str, str], expected: int
) -> None:
    """As a container or a unit has it: a worker for each core of the machine would wait, and need memory."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(16)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(cores, "GROUPS", tmp_path / "cgroup", raising=False)
    monkeypatch.setattr(cores, "OWN_GROUP", tmp_path / "own", raising=False)
    if group is not None:
        (tmp_path / "own").write_text(f"{group}\n", encoding="utf-8")
    for name, limit in limits.items():
        (tmp_path / "cgroup" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "cgroup" / name / "cpu.max").write_text(f"{limit}\n", encoding="utf-8")
    assert usable_cores() == expected
