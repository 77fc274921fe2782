"""Parts of one's own in `evokey bench`, run files for other tools, and results that say how they were made."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import small_sets
from typer.testing import CliRunner

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

import ir_measures

from evokey.bench import naming
from evokey.bench.data import trec
from evokey.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "laboratory.md"
OWN = '''
import numpy as np
from evokey.types import Expansion, Ruling, Unit


class Letters:
    """Texts by their letters."""

    kind, cost = "dense", "nothing"

    def __init__(self, size=26):
        self.size, self.identity = size, f"letters/{size}"

    def documents(self, texts):
        rows = np.zeros((len(texts), self.size), np.float32)
        for row, text in zip(rows, texts):
            for letter in text.lower():
                row[ord(letter) % self.size] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    queries = documents


class Leaf:
    """Knows which document a question of the small set is about."""

    identity = "leaf"

    def expand(self, query, look):
        return Expansion(query, (Unit("leaf" + query.split()[0].strip("askbeg")),), "leaf")


class Half:
    """Accepts what is right of questions with an even number, and nothing else."""

    identity, looks_at = "half", "retrieval"

    def verify(self, attempt):
        even = int(attempt.query.split()[0].strip("askbeg")) % 2 == 0
        return Ruling(even, float(even), dict(attempt.relevant) if even else {}, "by number")
'''


@pytest.fixture(autouse=True)
def own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"<!-- towards.py -->\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "towards.py").write_text(code, "utf-8")
    (tmp_path / "ownparts.py").write_text(OWN, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def bench(folder: Path, out: Path, *arguments: object) -> list[dict[str, Any]]:
    given = ["bench", str(folder), "--out", str(out), "--json", *map(str, arguments)]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def test_the_policy_of_the_page_has_twenty_lines_and_runs_beside_ours(tmp_path: Path) -> None:
    assert len((tmp_path / "towards.py").read_text().rstrip().splitlines()) <= 20
    folder = small_sets.gap(tmp_path / "gap")
    found = bench(folder, tmp_path / "out", "--encoder", "bm25", "--seeds", 1, "--protocol", "same-intent",
                  "--policy", "none,guarded,paper:x=2,capacity=8,towards:Towards:step=2")  # fmt: skip
    means = {one["policy"]: one["metrics"]["nDCG@10"] for one in found}
    assert list(means) == ["guarded", "none", "paper:x=2,capacity=8", "towards:Towards:step=2"]
    assert (means["none"], means["guarded"], means["towards:Towards:step=2"]) == (0, 1, 1)
    page = (tmp_path / "out" / "tables.md").read_text("utf-8")
    assert "towards:Towards:step=2" in page


def test_an_encoder_an_expander_and_a_verifier_of_ones_own(tmp_path: Path) -> None:
    folder = small_sets.gap(tmp_path / "gap")
    given = ("--seeds", 1, "--protocol", "same-intent")
    (letters,) = bench(folder, tmp_path / "1", "--encoder", "ownparts:Letters:size=31", "--policy", "guarded", *given)
    assert letters["encoder"] == "ownparts:Letters:size=31"
    (asked,) = bench(folder, tmp_path / "2", "--encoder", "bm25", "--policy", "live:ownparts:Leaf", *given)
    assert asked["metrics"]["nDCG@10"] == 1
    verified = ("--encoder", "bm25", "--policy", "towards:Towards", "--verifier", "ownparts:Half")
    (half,) = bench(folder, tmp_path / "3", *verified, *given)
    assert half["metrics"]["nDCG@10"] == pytest.approx(0.5)


def test_a_verifier_of_answers_reads_what_the_model_says(tmp_path: Path) -> None:
    """The model says the first passage again, which is the right answer to even questions here."""
    folder = small_sets.magnet(tmp_path / "magnet")
    gold = ["please wait here with these words", "something else"]
    small_sets.lines(folder / "answers.jsonl", ({"_id": f"q{n}", "answer": gold[n % 2]} for n in range(48)))
    given = ("--encoder", "bm25", "--policy", "towards:Towards", "--seeds", 1)
    (found,) = bench(folder, tmp_path / "out", *given, "--verifier", "exact-match", "--llm", "reading:Reading")
    assert found["verifier"] == "exact-match" and found["report"]["documents"] == 1, "the document that was cited"


def test_run_files_give_other_tools_the_same_measures(tmp_path: Path) -> None:
    folder, rankings = small_sets.magnet(tmp_path / "magnet"), tmp_path / "rankings"
    given = ("--encoder", "bm25", "--policy", "none,guarded", "--seeds", 2, "--runs", rankings)
    found = bench(folder, tmp_path / "out", *given)
    files = sorted(rankings.iterdir())
    assert [path.name for path in files] == sorted(
        path.with_suffix(".trec").name for path in (tmp_path / "out" / "runs").iterdir()
    )
    judged = {f"q{n}": {f"d{n}": 1} for n in range(48)}
    for one in found:
        (path,) = [path for path in files if f".{one['policy']}.seed{one['seed']}." in path.name]
        first = path.read_text("utf-8").splitlines()[0].split()
        assert (first[1], first[3], first[5], len(first)) == ("Q0", "1", one["policy"], 6)
        run = {query: dict(hits) for query, hits in trec.run(path).items()}
        assert len(run) == one["queries"]
        tested = {query: judged[query] for query in run}
        (score,) = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], tested, run).values()
        assert score == pytest.approx(one["metrics"]["nDCG@10"])
    files[0].unlink()
    assert bench(folder, tmp_path / "out", *given) and files[0].exists(), "a ranking that is missing is made again"


def test_scores_of_run_files_fall_strictly() -> None:
    found = trec.separate([("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 0.0)])
    scores = [score for _, score in found]
    assert [id for id, _ in found] == ["a", "b", "c", "d"]
    assert sorted(set(scores), reverse=True) == scores == pytest.approx([1, 1, 1, 0])
    assert trec.needs_escape({"q": [("a b", 1.0)]}) and not trec.needs_escape({"q": found})


def test_a_result_says_the_command_that_makes_it_again(tmp_path: Path) -> None:
    folder, out = small_sets.gap(tmp_path / "a gap"), tmp_path / "out"
    bench(folder, out, "--encoder", "bm25", "--policy", "towards:Towards:step=2", "--seeds", 2, "--rate", 0.4)
    for path in sorted((out / "runs").iterdir()):
        result = json.loads(path.read_text("utf-8"))
        assert result["version"]
        program, *arguments = shlex.split(result["command"])
        assert program == "evokey"
        again = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "again"), "--json"])
        assert again.exit_code == 0, again.output
        made = json.loads((tmp_path / "again" / "runs" / path.name).read_text("utf-8"))
        assert made["values"] == result["values"]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("paper", "paper"),
        ("paper:x=2,capacity=8", {"name": "paper", "x": 2, "capacity": 8}),
        ("a.b:C", "a.b:C"),
        ("a.b:C:flag=true,rate=0.5", {"name": "a.b:C", "flag": True, "rate": 0.5}),
        ("openai:model=m,base_url=https://x:1/v1", {"name": "openai", "model": "m", "base_url": "https://x:1/v1"}),
        ("hyde:prompt=Say, at length: {{query}}", {"name": "hyde", "prompt": "Say, at length: {{query}}"}),
    ],
)
def test_options_follow_a_name(said: str, named: Any) -> None:
    assert naming.parse(said) == named
    assert naming.base(said) == (named if isinstance(named, str) else named["name"])


def test_a_comma_before_an_option_divides_no_names() -> None:
    assert naming.split(["none,paper:x=2,capacity=8, a.b:C:y=1", "none"]) == [
        "none",
        "paper:x=2,capacity=8",
        "a.b:C:y=1",
    ]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("paper:z=2", "policy 'paper' has no option z; its options are: x, capacity"),
        ("nowhere:Mine", "policy 'nowhere:Mine' cannot be imported from nowhere:Mine"),
        ("ownparts:Letters", "has no propose, overlay"),
        ("no-rows:x=2", "policy 'no-rows' cannot"),
    ],
)
def test_a_part_that_cannot_be_made_is_named_before_anything_is_measured(
    tmp_path: Path, policy: str, message: str
) -> None:
    folder = small_sets.gap(tmp_path / "gap")
    result = CliRunner().invoke(app, ["bench", str(folder), "--policy", policy, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2 and not (tmp_path / "out").exists()
    assert message in " ".join(result.stderr.split())
