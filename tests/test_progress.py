"""Progress: silent when short, a bar on a terminal, lines elsewhere, and never in the way."""

import io

import pytest

from locole.progress import track


def test_short_loops_are_silent(capsys):
    assert list(track(range(5), "work")) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().err == ""


def test_lines_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr("locole.progress._PATIENCE_S", -1.0)
    assert list(track(iter([1, 2]), "work", total=2)) == [1, 2]
    assert "work: 2/2 (100%)" in capsys.readouterr().err
    list(track(iter([1, 2]), "unknown length"))
    assert "unknown length: 1" in capsys.readouterr().err


def test_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("locole.progress._PATIENCE_S", -1.0)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    assert sum(track(range(4), "bar")) == 6
    assert "bar" in screen.getvalue()


def test_an_exception_passes_through_and_closes(monkeypatch):
    monkeypatch.setattr("locole.progress._PATIENCE_S", -1.0)

    def fails():
        for i in track(range(4), "work"):
            if i == 2:
                raise KeyError(i)

    with pytest.raises(KeyError):
        fails()
