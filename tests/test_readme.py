"""README and docs cannot rot: their examples run, their tables are what the result files say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_readme_example_prints_what_it_says(tmp_path: Path) -> None:
    code = re.search(r"```python\n(import evokey\n.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert code is not None
    said = re.findall(r"print\(.*#\s*(\S+)", code[1])
    run = subprocess.run([sys.executable, "-c", code[1]], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.split() == said == ["git-commit", "git-revert", "git-revert", "git-commit"]
    assert run.stderr == ""


def test_the_readme_s_layer_learns_beside_a_search(tmp_path: Path) -> None:
    code = re.search(r"```python\n(layer = .*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert code is not None
    engine = "import evokey\nsearch = lambda query, k: [('git-commit', 2.0), ('git-revert', 1.0)][:k]\n"
    first = "print(layer.search('how do I undo a commit?')[0].id)"
    program = f"{engine}{code[1]}\n{first}"
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "taught queries" in run.stdout
    assert run.stdout.split()[-1] == "git-revert"


@pytest.mark.parametrize("page", ["retrievers", "loop", "passages", "import", "beside"])
def test_the_examples_of_a_page_run_and_print_what_they_say(page: str, tmp_path: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text("utf-8"), re.DOTALL):
        said = re.findall(r"print\(.*?\)  # (.*)", code)
        run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert (run.returncode, run.stderr, run.stdout.splitlines()) == (0, "", said)


def test_tables_are_what_the_result_files_say_and_every_result_file_is_shown() -> None:
    check = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "tables.py", "--check"], capture_output=True, text=True
    )
    assert (check.returncode, check.stdout) == (0, "stale: none\nunused result files: none\n")


@pytest.mark.parametrize(
    "page", sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    targets = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in targets if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_page_of_the_command_line_is_what_the_program_says() -> None:
    check = subprocess.run([sys.executable, ROOT / "docs" / "generate.py", "--check"], check=False)
    assert check.returncode == 0, "write it again with: python docs/generate.py"
