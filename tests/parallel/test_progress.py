"""Progress: silent when short, a bar on a terminal, lines elsewhere, and never in the way."""

import io

import pytest

from locole.parallel.progress import track


def test_short_loops_are_silent(capsys):
    assert list(track(range(5), "work")) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().err == ""


def test_lines_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    assert list(track(iter([1, 2]), "work", total=2)) == [1, 2]
    assert "work: 2/2 (100%)" in capsys.readouterr().err
    list(track(iter([1, 2]), "unknown length"))
    assert "unknown length: 1" in capsys.readouterr().err


def test_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    assert sum(track(range(4), "bar")) == 6
    assert "bar" in screen.getvalue()


def test_an_exception_passes_through_and_closes(monkeypatch):
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)

    def fails():
        for i in track(range(4), "work"):
            if i == 2:
                raise KeyError(i)

    with pytest.raises(KeyError):
        fails()


def test_lines_tell_units_rate_and_time_left(monkeypatch, capsys):
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    monkeypatch.setattr("locole.parallel.progress._Lines.every_s", -1.0)
    list(track(["abc", "d"], "reading", total=8, unit="letters", size=len))
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("reading: 3/8 letters (38%), ")
    assert last.startswith("reading: 4/8 letters (50%), ")
    assert " letters/s, about " in last
    assert " s left, " in last


def test_an_estimate_that_was_too_small_is_left_out(monkeypatch, capsys):
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    monkeypatch.setattr("locole.parallel.progress._Lines.every_s", -1.0)
    list(track(range(3), "work", total=2, unit="rows"))
    assert capsys.readouterr().err.splitlines()[-1].startswith("work: 3 rows, ")


def test_lines_are_rare(monkeypatch, capsys):
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    list(track(range(1000), "work"))
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_loops_within_a_loop_are_silent(monkeypatch, capsys):
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    for _ in track(range(2), "outer"):
        list(track(range(2), "inner"))
    assert "inner" not in capsys.readouterr().err
    # A loop that was left early is over.
    for _ in track(range(2), "left"):
        break
    list(track(range(2), "inner"))
    assert "inner: 2/2" in capsys.readouterr().err


def test_a_bar_has_rate_and_time_left(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    list(track(iter([1, 2, 3]), "[b]bar", total=3, unit="rows"))
    assert "[b]bar" in screen.getvalue()
    assert "rows/s" in screen.getvalue()
    assert "about 0 s left" in screen.getvalue()
