"""The table of verbs, exit codes, messages, and what is not imported."""

from __future__ import annotations

import errno
import importlib
import io
import json
import os
import signal
import subprocess
import sys
import warnings

import pytest
from cli_server import ENVIRONMENT

import locole
from locole.cli.app import VERBS, _without_debug, main
from locole.exceptions import LocoleError, LocoleWarning

HEAVY = ("numpy", "scipy", "sklearn", "numba", "pyarrow", "rich", "locole.classifier")


def modules_after(code: str) -> tuple[set[str], str]:
    """Modules that a fresh Python has after some lines, and what it printed."""
    lines = f"import sys\n{code}\nprint('\\0' + ' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", lines],
        env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    out, _, names = done.stdout.rpartition("\0")
    return set(names.split()), out


@pytest.mark.parametrize("words", [["--help"], ["fit", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(words):
    modules, out = modules_after(f"from locole.cli import main\nassert main({words}) == 0")
    assert not modules.intersection(HEAVY)
    assert out


@pytest.mark.parametrize("options", [[], ["--force"]])
def test_fit_says_something_before_it_imports_anything_heavy(tmp_path, options):
    (tmp_path / "some.tsv").touch()
    if options:
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "manifest.json").touch()
    words = ["fit", str(tmp_path / "some.tsv"), "-o", str(tmp_path / "model"), *options]
    code = f"""
from locole.cli import main
import locole.cli.show
def say(message):
    print(message)
    raise KeyboardInterrupt
locole.cli.show.say = say
assert main({words}) == 130
"""
    modules, out = modules_after(code)
    assert out == "starting …\n"
    assert not modules.intersection(HEAVY)


def test_the_package_is_imported_when_asked_for():
    modules, _ = modules_after("import locole")
    assert not modules.intersection(HEAVY)
    assert locole.LocoleClassifier is importlib.import_module("locole.classifier").LocoleClassifier
    assert locole.load is importlib.import_module("locole.models").load
    assert {"LocoleClassifier", "load", "__version__"} <= set(dir(locole))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        locole.nothing  # noqa: B018


def test_every_verb_of_the_table_exists():
    for verb, name in VERBS.items():
        module = importlib.import_module(name)
        function = getattr(module, verb.replace("-", "_"))
        assert function.__doc__.strip().split("\n")[0].endswith(".")
        assert function.__name__ in module.__all__


def test_help_lists_all_verbs(run):
    for words in (["--help"], []):
        shown = run(*words)
        assert shown.code == 0
        assert all(f"\n  {verb} " in shown.out for verb in VERBS)


def test_version(run):
    assert run("--version") == (0, f"locole {locole.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["nonsense"], "(see locole --help)"),
        (["fit"], "TRAIN"),
        (["fit", "train.tsv"], "--output"),
        (["fit", "train.tsv"], "(see locole fit --help)"),
        (["fit", "train.tsv", "-o", "new", "--wrong"], "No such option"),
        (["fit", "train.tsv", "-o", "new", "--dim", "many"], "--dim"),
        (["fit", "missing.tsv", "-o", "new"], "missing.tsv: No such file or directory."),
        (["fit", "train.tsv", "-o", "texts"], "replace it by --force"),
        (["fit", "train.tsv", "-o", "train.csv"], "train.csv is a file"),
        (["fit", "train.tsv", "-o", "no/such/folder"], "make it first"),
        (["fit", "train.tsv", "-o", "."], "holds no model"),
        (["fit", "train.tsv", "-o", "new", "--embedding", "magic"], "or an Embedding, not 'magic'"),
        (["fit", "train.tsv", "-o", "new", "--regressor", "magic"], "fit and predict, not 'magic'"),
        (["fit", "train.tsv", "-o", "new", "--analyzer", "magic"], "--analyzer must be 'auto', "),
        (["fit", "train.tsv", "-o", "new", "--storage", "int3"], "storage must be 'float16', 'float32'"),
        (["fit", "train.tsv", "-o", "new", "--l2", "0"], "above 0, 'auto' or 'stream', not 0"),
        (["fit", "train.tsv", "-o", "new", "--seed", "-1"], "--seed"),
        (["fit", "train.tsv", "-o", "new", "--jobs", "0"], "--jobs must be None, a whole number"),
        (["fit", "train.tsv", "-o", "new", "--hash", "1"], "--hash must be"),
        (["fit", "train.tsv", "-o", "new", "--min-df", "0"], "--min-df must be"),
        (["fit", "train.csv", "-o", "new"], "by --text-column"),
        (["fit", "train.csv", "-o", "new", "--text-column", "1"], "--label-column"),
        (["fit", "new.txt", "-o", "new"], "no labels"),
        (["fit", "train.tsv", "-o", "new", "--format", "xls"], "unknown format 'xls'"),
        (["fit", "train.svm", "-o", "new", "--regressor", "mlp", "--l1", "1"], "no --l1"),
        (["predict", "missing", "new.txt"], "cannot be loaded"),
        (["predict", "texts", "missing.txt"], "missing.txt: No such file"),
        (["predict", "texts", "test.svm"], "has numbers but the model takes texts"),
        (["predict", "numbers", "new.txt"], "has texts but the model takes numbers"),
        (["predict", "texts", "new.txt", "-k", "11"], "more than the 10 labels"),
        (["predict", "texts", "new.txt", "-k", "0"], "at least 1"),
        (["predict", "texts", "new.txt", "--batch", "0"], "--batch must be at least 1"),
        (["predict", "texts", "new.txt", "--json"], "needs -o"),
        (["predict", "texts", "new.txt", "-o", "a.xls"], "--output-format"),
        (["predict", "texts", "new.txt", "--output-format", "xls"], "unknown output format"),
        (["predict", "texts", "new.txt", "--output-format", "parquet"], "by -o"),
        (["predict", "texts", "new.txt", "-o", "no/folder/a.tsv"], "make it first"),
        (["predict", "texts", "new.txt", "-o", "texts", "--output-format", "tsv"], "is a folder"),
        (["evaluate", "texts", "new.txt"], "no labels"),
        (["evaluate", "texts", "test.tsv", "--report", "r.xls"], "a .tsv or a .csv file"),
        (["evaluate", "texts", "test.tsv", "--plot", "p.png"], "--plot writes an .html page"),
        (["evaluate", "texts", "test.tsv", "--worst", "-1"], "must not be negative"),
        (["inspect", "missing"], "there is no model in missing"),
        (["inspect", "train.tsv"], "there is no model in train.tsv: give the path of a folder"),
        (["coherence", "magic", "--classes", "9"], "unknown embedding 'magic'"),
        (["coherence", "kerdock", "--classes", "9", "--dim", "15"], "15"),
        (["advise", "--classes", "1"], "at least two labels"),
        (["advise", "--classes", "100", "--memory", "2GB"], "--memory needs --features"),
        (["advise", "--classes", "100", "--memory", "much", "--features", "9"], "is no size"),
        (["bound", "--excess", "0.01"], "coherence"),
        (["bound", "--excess", "0.01", "--coherence", "2"], "[0, 1)"),
        (["bound", "--excess", "0.1", "--coherence", "0.1", "--margins", "new.txt"], "line 1"),
        (["demo", "--max-cities", "0"], "max_cities"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_code_two(run, folder, words, reason):
    before = sorted(path.name for path in folder.rglob("*"))
    done = run(*words)
    assert done.code == 2
    assert done.out == ""
    *messages, line = done.err.splitlines()
    assert line.startswith("locole: ")
    assert reason in line
    # What was being done may be told before.
    assert all(message.endswith("…") for message in messages)
    assert "Traceback" not in done.err
    assert sorted(path.name for path in folder.rglob("*")) == before


@pytest.mark.parametrize("place", [0, 1, 3])
def test_debug_shows_where_an_error_comes_from(run, folder, place):
    words = ["predict", "texts", "missing.txt"]
    done = run(*words[:place], "--debug", *words[place:])
    assert done.code == 2
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1] == "locole: missing.txt: No such file or directory."


def test_debug_after_two_dashes_is_a_word():
    assert _without_debug(["a", "--", "--debug"]) == (["a", "--", "--debug"], False)
    assert _without_debug(["--debug", "a", "--"]) == (["a", "--"], True)


def with_verb(monkeypatch, function):
    """Let a verb be something else."""
    monkeypatch.setattr("locole.cli.inspect.inspect", function)


def test_a_bug_is_code_one_without_traceback(run, monkeypatch):
    def inspect(model: str) -> None:
        """Fail."""
        raise KeyError("of mine")

    with_verb(monkeypatch, inspect)
    done = run("inspect", "x")
    assert done.code == 1
    assert done.err.startswith("locole: a bug, please report it: KeyError: 'of mine'")
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (LocoleError("two\nlines: give format= or zero_based."), 2,
         "two lines: give --format or --zero-based or --one-based."),
        (ImportError("it needs the package x"), 2, "it needs the package x"),
        (PermissionError(13, "Permission denied", "a file"), 2, "a file: Permission denied."),
        (OSError("the disk is gone"), 2, "the disk is gone."),
        (MemoryError("cannot allocate"), 2, "not enough memory: cannot allocate"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)  # fmt: skip
def test_what_becomes_of_errors(run, monkeypatch, error, code, line):
    def inspect(model: str) -> None:
        """Fail."""
        raise error

    with_verb(monkeypatch, inspect)
    assert run("inspect", "x") == (code, "", f"locole: {line}\n")


def test_messages_cannot_steer_a_terminal(run, folder):
    done = run("predict", "texts", "\x1b[31mred\nname.txt")
    assert done == (2, "", "locole: \\x1b[31mred name.txt: No such file or directory.\n")


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl"])
def test_answers_cannot_steer_a_terminal(folder, monkeypatch, format):
    """Files and pipes get labels as they are."""
    (folder / "some.tsv").write_text("\x1b[31mred\ta\n\x9b0c\tb\n" * 2, encoding="utf-8")
    (folder / "rows.txt").write_text("a\n\x07b\n", encoding="utf-8")
    assert main(["fit", "some.tsv", "-o", "model"]) == 0
    words = ["predict", "model", "rows.txt", "--with-text", "-k", "2", "--output-format", format]
    shown = {}
    for is_terminal in (True, False):
        screen = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        monkeypatch.setattr(screen, "isatty", lambda is_terminal=is_terminal: is_terminal)
        monkeypatch.setattr("sys.stdout", screen)
        assert main(words) == 0
        shown[is_terminal] = screen.buffer.getvalue().decode()
    assert all(c.isprintable() or c in "\t\n" for c in shown[True])
    assert shown[True].count("\n") == shown[False].count("\n")
    assert "\x9b" in shown[False]
    assert "\\x9b" in shown[True]


def test_any_terminal_can_show_any_label(run, folder, monkeypatch):
    lines = "Zürich\ta\n東京\tb\nZürich\ta a\n東京\tb b\n"
    (folder / "some.tsv").write_text(lines, encoding="utf-8")
    (folder / "test.tsv").write_text("東京\ta\n", encoding="utf-8")
    assert run("fit", "some.tsv", "-o", "model").code == 0
    shown = []
    for options in ([], ["--json"]):
        screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr("sys.stdout", screen)
        assert main(["evaluate", "model", "test.tsv", *options]) == 0
        shown.append(screen.buffer.getvalue().decode("ascii"))
    assert "\\u6771\\u4eac" in shown[0]
    assert json.loads(shown[1])["worst"][0]["label"] == "東京"


def test_a_warning_is_one_line(run, monkeypatch):
    def inspect(model: str) -> None:
        """Warn."""
        warnings.warn("a word\nof warning", LocoleWarning, stacklevel=1)

    with_verb(monkeypatch, inspect)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = run("inspect", "x")
    assert done == (0, "", "locole: warning: a word of warning\n")


def test_python_dash_m():
    done = subprocess.run(
        [sys.executable, "-m", "locole", "--version"],
        env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == f"locole {locole.__version__}\n"


def test_main_takes_the_words_of_the_process(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["locole", "--version"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("locole ")


# Streams that close, signals at any moment, and places that cannot be written -------------------


@pytest.mark.parametrize("pipe", ["|", "2>&1 |"])
def test_a_closed_pipe_ends_the_printing_and_not_the_work(shell, folder, pipe):
    done = shell(f"locole fit train.tsv -o new -j 1 {pipe} head -c 1")
    assert done.code == 0
    assert len(done.out) == 1
    assert locole.load(folder / "new").classes_.size == 10
    shell(f"locole evaluate texts test.tsv --report report.csv {pipe} true")
    assert (folder / "report.csv").read_text().count("\n") == 11
    shell(f"locole predict texts new.txt -o answers.csv --json {pipe} true")
    assert (folder / "answers.csv").read_text().count("\n") == 13
    shell(f"locole update texts monday.tsv -j 1 {pipe} true")
    assert locole.load(folder / "texts").classes_.size == 11
    shell(f"locole labels texts --retire llama --json {pipe} true")
    assert locole.load(folder / "texts").classes_.size == 10
    shell(f"locole report records {pipe} true")
    assert (folder / "report.html").read_text().endswith("</html>\n")


def test_streams_that_the_shell_has_closed(folder, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    assert main(["fit", "train.tsv", "-o", "new"]) == 0
    assert main(["fit", "train.tsv", "-o", "new"]) == 2


def ended_by(number, moment):
    """Code of a process that sends itself a signal at some moment of its life."""
    code = f"""
import atexit, builtins, os, sys
kill, really = lambda: os.kill(os.getpid(), {int(number)}), builtins.__import__
def kill_at_import(name, *rest):
    if name == "typer":
        kill()
    return really(name, *rest)
sys.argv = ["locole", "--version"]
from locole.__main__ import run
moment = {moment!r}
if moment == "starting":
    builtins.__import__ = kill_at_import
elif moment == "ending":
    import locole.cli
    main = locole.cli.main
    locole.cli.main = lambda: (main(), atexit.register(kill))[0]
else:
    atexit.register(kill)
run()
"""
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, timeout=60, check=False)
    return done.returncode


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["starting", "ending", "last"])
def test_a_signal_at_any_moment_gives_the_code_of_shells(number, moment):
    # In its last moment a process has its own code already.
    assert ended_by(number, moment) == (0 if moment == "last" else 128 + number)


def test_who_ignores_signals_is_left_alone():
    code = (
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "sys.argv = ['locole', '--version']\nfrom locole.__main__ import run\n"
        "import locole.cli.app as app\nshow = app._print_version\n"
        "app._print_version = lambda wanted: (signal.raise_signal(signal.SIGINT), show(wanted))\nrun()"
    )
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, timeout=60, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "train.tsv", "-o", "new"],
        ["fit", "train.tsv", "-o", "texts", "--force"],
        ["predict", "texts", "new.txt", "-o", "answers.csv"],
        ["evaluate", "texts", "test.tsv", "--report", "report.csv"],
        ["demo", "--html", "page.html"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_a_place_that_cannot_be_written_is_found_before_anything_is_read(
    run, folder, monkeypatch, words
):
    def refuse(dir):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), dir)

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    done = run(*words)
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert "cannot be written (Read-only file system): take another path, or make" in line


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "missing.tsv", "-o", "texts"],
        ["fit", "train.tsv", "--test", "missing.tsv", "-o", "new"],
        ["predict", "texts", "missing.tsv", "-o", "no/such/file.csv"],
        ["evaluate", "texts", "missing.tsv", "--report", "no/such/file.csv"],
    ],
    ids=lambda words: words[0],
)
def test_input_is_checked_before_output_and_work(run, folder, words):
    assert run(*words) == (2, "", "locole: missing.tsv: No such file or directory.\n")


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "train.tsv", "-o", "new", "--skip-bad-rows", "train.tsv"],
        ["fit", "train.tsv", "-o", "new", "--test", "test.tsv", "--skip-bad-rows", "./test.tsv"],
        ["predict", "texts", "test.tsv", "-o", "test.tsv"],
        ["predict", "texts", "test.tsv", "-o", "link.tsv"],
        ["predict", "texts", "test.tsv", "--skip-bad-rows", "test.tsv"],
        ["predict", "texts", "test.tsv", "-o", "a.tsv", "--skip-bad-rows", "a.tsv"],
        ["evaluate", "texts", "test.tsv", "--report", "test.tsv"],
        ["evaluate", "texts", "test.tsv", "--report", "a.csv", "--plot", "a.csv"],
        ["evaluate", "texts", "test.tsv", "--skip-bad-rows", "test.tsv"],
        ["update", "texts", "test.tsv", "--skip-bad-rows", "test.tsv"],
    ],
    ids=" ".join,
)
def test_a_file_that_is_read_is_never_replaced(run, folder, words):
    (folder / "link.tsv").symlink_to("test.tsv")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = run(*words)
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert line.endswith(
        " is named twice, and what is written would replace the other: take another path."
    )
    assert before == {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def test_a_full_disk_is_named(run, folder, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("locole.io.write_model", full)
    done = run("fit", "train.svm", "-o", "new")
    assert (done.code, done.err.splitlines()[-1]) == (2, "locole: new: No space left on device.")
    monkeypatch.setattr("locole.cli.answers._tsv", full)
    for words, name in ([], "standard output"), (["-o", "a.tsv"], "a.tsv"):
        done = run("predict", "texts", "new.txt", *words)
        assert done == (2, "", f"locole: {name}: No space left on device.\n")
    assert not (folder / "a.tsv").exists()


def test_a_folder_and_a_file_without_permission_are_no_input(run, folder, monkeypatch):
    done = run("evaluate", "texts", "records")
    assert done == (2, "", "locole: records is a folder: give the name of a file.\n")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    done = run("evaluate", "texts", "test.tsv")
    assert done == (2, "", "locole: test.tsv: Permission denied.\n")
