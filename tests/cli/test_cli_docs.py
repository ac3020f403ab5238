"""Every verb is documented, and every command in the documentation and in the help runs."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from samples import write_samples

from locole.cli.app import VERBS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
EXAMPLES = [
    (verb, example)
    for verb, module in VERBS.items()
    for example in importlib.import_module(module).EXAMPLES
]
# Take minutes, or run until they are told to end; `make demo` runs the first.
TOO_LONG = {
    "locole demo",
    "locole bench table2 --quick",
    "locole demo --serve",
    "locole serve model",
    "locole serve animals=model --host 0.0.0.0 --port 8080 --token-file token.txt",
}
# Run with their page.
ON_THE_PAGE = set((ROOT / "docs" / "guide" / "cli.md").read_text(encoding="utf-8").splitlines())


def bash_blocks(text: str) -> list[str]:
    return re.findall(r"^```bash\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def sections(page: Path) -> dict[str, str]:
    """Text below each heading of second order."""
    parts = re.split(r"^## (.+)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_section_with_a_command(verb):
    section = sections(ROOT / "docs" / "guide" / "cli.md")[verb]
    blocks = bash_blocks(section)
    assert any(re.search(rf"^locole {verb}\b", block, flags=re.MULTILINE) for block in blocks)
    table = (ROOT / "docs" / "guide" / "cli.md").read_text(encoding="utf-8")
    assert f"| [`{verb}`](#{verb}) |" in table


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_examples_in_its_help(run, verb):
    shown = run(verb, "--help")
    assert shown.code == 0
    assert shown.err == ""
    module = importlib.import_module(VERBS[verb])
    assert module.EXAMPLES
    for example in module.EXAMPLES:
        assert f"locole {verb}" in example
        assert f"    {example}\n" in shown.out
    assert "--json" in shown.out


@pytest.mark.parametrize("verb", ["fit", "predict", "evaluate", "serve"])
def test_every_option_is_described(run, verb):
    section = sections(ROOT / "docs" / "guide" / "cli.md")[verb]
    everywhere = (ROOT / "docs" / "guide" / "cli.md").read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z0-9-]+", run(verb, "--help").out.split("\nOptions:")[1]))
    for option in options - {"--help"}:
        assert option in (everywhere if verb != "fit" else section), option


@pytest.mark.parametrize(
    ("verb", "example"), [pair for pair in EXAMPLES if pair[1] not in TOO_LONG | ON_THE_PAGE]
)
def test_examples_in_the_help_run(shell, folder, verb, example):
    if verb not in ("fit", "demo"):
        model = "numbers" if ".svm" in example else "texts"
        (folder / model).rename(folder / "model")
    done = shell(example)
    assert done.code == 0, done.err
    assert done.out or "-o " in example


def test_the_makefile_calls_verbs_that_exist():
    called = re.findall(r"\(BIN\)/locole (\S+)", (ROOT / "Makefile").read_text())
    assert called == ["demo"]


def test_examples_that_take_long_are_still_examples():
    assert {example for _, example in EXAMPLES} >= TOO_LONG


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if bash_blocks(page.read_text(encoding="utf-8"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_commands_of_a_page_run_in_order(shell, tmp_path, monkeypatch, page):
    write_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    for block in bash_blocks(page.read_text(encoding="utf-8")):
        done = shell(block)
        assert done.code == 0, f"{block}\n{done.err}"


def test_the_pages_with_commands_are_found():
    found = {page.name for page in PAGES if bash_blocks(page.read_text(encoding="utf-8"))}
    assert {"README.md", "cli.md"} <= found
