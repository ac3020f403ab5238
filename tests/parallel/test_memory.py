"""Memory that is left, by what the system says."""

from __future__ import annotations

import mmap
from pathlib import Path

from locole.parallel import memory


def test_memory_left(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:      5000 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert memory.available_bytes() == 5_120_000
    for name, text in [
        ("memory.max", "1000000\n"),
        ("memory.current", "900000\n"),
        ("memory.stat", "anon 5\ninactive_file 50000\n"),
    ]:
        (tmp_path / name).write_text(text)
    assert memory.available_bytes() == 150_000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_bytes() == 5_120_000
    (tmp_path / "meminfo").write_text("nothing")
    assert memory.available_bytes() is None


def test_freed_memory_is_given_back():
    def in_use():
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    blocks = [bytes(2000) for _ in range(30_000)]
    kept = blocks[::100]  # between the others, so that these cannot go by themselves
    del blocks
    before = in_use()
    memory.release_free_memory()
    assert before - in_use() > 30_000_000
    assert len(kept) == 300
