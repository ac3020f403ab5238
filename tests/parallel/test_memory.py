"""Memory that is left, by what the system says."""

from __future__ import annotations

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
