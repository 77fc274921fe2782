"""Systems on hand-made sets: who learns what, that every run starts untaught, and that given vectors change nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_sets

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

from evokey.bench import lessons, runs, systems
from evokey.bench.ablations import ABLATIONS
from evokey.bench.data import load
from evokey.bench.protocols import Question
from evokey.bench.runs import Run, measure
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.errors import InvalidInput

RUN = Run("", "bm25", "same-intent", None, 0, "guarded")


def outcome(folder: Path, scratch: Path, **given: Any) -> dict[str, Any]:
    return measure(replace(RUN, data=str(folder), **given), scratch)


def ndcg(result: dict[str, Any], group: str = "metrics") -> float:
    return float(result[group]["nDCG@10"])


def test_untaught_nothing_is_found_and_taught_one_wording_finds_the_other(tmp_path: Path) -> None:
    folder = small_sets.gap(tmp_path / "gap")
    untaught, taught = (outcome(folder, tmp_path, policy=policy) for policy in ("none", "guarded"))
    assert (ndcg(untaught), ndcg(untaught, "taught")) == (0, 0)
    assert (ndcg(taught), ndcg(taught, "taught"), ndcg(taught, "related")) == (1, 1, 1)
    assert taught["counts"] == {"taught": 24, "untaught": 24, "related": 24, "unrelated": 0}
    assert taught["unrelated"] is None


def test_what_no_lesson_touches_is_reported_apart_and_stays_unfound(tmp_path: Path) -> None:
    folder = small_sets.gap(tmp_path / "gap")
    found = outcome(folder, tmp_path, protocol="holdout", rate=0.5)
    assert found["counts"]["related"] + found["counts"]["unrelated"] == found["queries"] == 24
    assert (ndcg(found, "related"), ndcg(found, "unrelated"), ndcg(found, "taught")) == (1, 0, 1)
    assert ndcg(found) == pytest.approx(found["counts"]["related"] / 24)


def test_the_official_protocol_tests_what_train_has_taught(tmp_path: Path) -> None:
    found = outcome(small_sets.official(tmp_path / "gap"), tmp_path, protocol="official")
    assert (found["queries"], found["counts"]["taught"], ndcg(found)) == (24, 24, 1)


def test_a_stream_tells_the_quality_after_every_batch(tmp_path: Path) -> None:
    found = outcome(small_sets.gap(tmp_path / "gap"), tmp_path, protocol="stream", rate=0.5, batches=4)
    assert [point["taught"] for point in found["stream"]] == [0, 6, 12, 18, 24]
    tested = [point["metrics"]["nDCG@10"] for point in found["stream"]]
    assert tested[0] == 0
    assert tested == sorted(tested)
    assert tested[-1] == ndcg(found) == ndcg(outcome(tmp_path / "gap", tmp_path, protocol="holdout", rate=0.5))
    assert found["stream"][0]["next"]["nDCG@10"] == 0
    assert found["stream"][-1]["next"] is None


def test_a_curve_tells_taught_related_and_unrelated_questions_after_one_three_and_ten_lessons(tmp_path: Path) -> None:
    found = outcome(small_sets.gap(tmp_path / "gap"), tmp_path, protocol="curve", rate=0.5)
    points = found["stream"]
    assert [point["taught"] for point in points] == [0, 1, 3, 10, 24]
    assert points[0]["again"] is None
    assert all(point["again"]["nDCG@10"] == 1 for point in points[1:]), "what was taught is found"
    assert all(sum(point["counts"].values()) == 24 for point in points)
    assert points[1]["unrelated"]["nDCG@10"] == 0


def test_feedback_on_what_was_shown_names_only_what_the_untaught_index_found(tmp_path: Path) -> None:
    folder = small_sets.magnet(tmp_path / "magnet")  # the wrong document comes first, the right one second
    seen = outcome(folder, tmp_path, protocol="holdout", rate=0.5, shown=2)
    unseen = outcome(folder, tmp_path, protocol="holdout", rate=0.5, shown=1)
    everything = outcome(folder, tmp_path, protocol="holdout", rate=0.5)
    assert (seen["report"]["lessons"], unseen["report"]["lessons"]) == (24, 0)
    assert seen["values"] == everything["values"], "all right documents were among the two"
    assert not unseen["report"]["published"], "nothing right was shown, so nothing was taught"
    assert unseen["counts"]["taught"] == 24, "groups are those of full judgements"


def test_every_run_starts_from_an_untaught_memory(tmp_path: Path) -> None:
    folder = small_sets.gap(tmp_path / "gap")
    first, again = (outcome(folder, tmp_path, protocol="holdout", rate=0.5, seed=3) for _ in range(2))
    assert first["values"] == again["values"]
    assert ndcg(outcome(folder, tmp_path, policy="none")) == 0


def test_expansion_at_query_time_finds_what_the_query_alone_does_not(tmp_path: Path) -> None:
    folder = small_sets.recorded(small_sets.gap(tmp_path / "gap"))
    assert ndcg(outcome(folder, tmp_path, policy="expansion:oracle")) == 1
    assert ndcg(outcome(folder, tmp_path, policy="expansion")) == 1
    with pytest.raises(InvalidInput, match="no recorded expansions by nobody; there are: oracle"):
        outcome(folder, tmp_path, policy="expansion:nobody")


def test_bm25s_ranks_as_bm25_does(tmp_path: Path) -> None:
    texts = [f"{'cat ' * (n % 4)}{'dog ' * (n % 3)}bird{n} sings in tree{n % 5}{' leaf' * n}" for n in range(40)]
    small_sets.lines(
        tmp_path / "animals" / "corpus.jsonl", ({"_id": f"d{n}", "text": text} for n, text in enumerate(texts))
    )
    asked = {f"q{n}": f"which cats and dogs sing in tree{n} like bird{3 * n}" for n in range(5)}
    small_sets.lines(tmp_path / "animals" / "queries.jsonl", ({"_id": id, "text": text} for id, text in asked.items()))
    small_sets.qrels(tmp_path / "animals" / "qrels" / "test.tsv", {id: {"d3": 1} for id in asked})
    lab = systems.Lab(load(tmp_path / "animals"), "bm25", tmp_path)
    with systems.system("bm25s", lab) as theirs, systems.system("none", lab) as ours:
        for id, text in asked.items():
            question = Question(id, text, {})
            assert theirs.rank(question, 10) == ours.rank(question, 10) != []


def test_lessons_name_what_is_wrong_among_the_first_found(tmp_path: Path) -> None:
    """One document is in everybody's way: who is told so learns it for questions yet to come."""
    folder = small_sets.magnet(tmp_path / "magnet")
    found = {
        policy: outcome(folder, tmp_path, protocol="holdout", rate=0.5, policy=policy, wrong=1)
        for policy in ("none", "guarded:lens=none", "guarded:lens=none,negatives=false")
    }
    assert [one["metrics"]["nDCG@1"] for one in found.values()] == [0, 1, 0]


def test_noisy_lessons_name_one_wrong_document_and_the_others_stay(tmp_path: Path) -> None:
    lab = systems.Lab(load(small_sets.gap(tmp_path / "gap")), "bm25", tmp_path)
    taught = runs.protocols.split(lab.data, "holdout").taught

    def noise(seed: int) -> list[Question]:
        with systems.system("none", lab) as untaught:
            return lessons.add_noise(taught, untaught.rank, lab.data.documents, 0.5, seed)

    noisy = noise(0)
    changed = [(one, other) for one, other in zip(taught, noisy, strict=True) if one != other]
    assert 0.25 * len(taught) < len(changed) < 0.75 * len(taught)
    assert all(len(other.right) == 1 and not one.right & other.right for one, other in changed)
    assert noise(0) == noisy != noise(1)


def test_noise_costs_quality_and_is_measured_against_the_true_judgements(tmp_path: Path) -> None:
    folder = small_sets.gap(tmp_path / "gap")
    clean, noisy = (outcome(folder, tmp_path, protocol="holdout", rate=0.5, noise=noise) for noise in (0.0, 0.5))
    assert clean["counts"] == noisy["counts"]
    assert ndcg(noisy, "taught") < ndcg(clean, "taught") == 1


def test_documents_that_a_set_judges_wrong_are_taught_as_wrong(tmp_path: Path) -> None:
    lab = systems.Lab(load(small_sets.gap(tmp_path / "gap")), "bm25", tmp_path)
    with lab.memory() as memory:
        systems.Taught(memory, lab, systems.Lessons()).teach([Question("a0", "ask0", {"d0": 1, "d1": 0})])
        assert memory.composer.log(1).taught.wrong == {"ask0": {2: 1.0}}


# ---- vectors


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set for a dense encoder, with its vectors beside it under the name of an encoder."""
    folder = tmp_path_factory.mktemp("data") / "sentences"
    things = (
        "bread cheese apple river mountain ocean violin trumpet piano train bicycle rocket doctor lawyer moon".split()
    )
    texts = {f"d{n}": f"a short note on the {thing}" for n, thing in enumerate(things)}
    asked = {f"{kind}{n}": f"{said} {thing}" for n, thing in enumerate(things)
             for kind, said in (("a", "do you have anything about a"), ("b", "please show me some"))}  # fmt: skip
    small_sets.lines(folder / "corpus.jsonl", ({"_id": id, "text": text} for id, text in texts.items()))
    small_sets.lines(folder / "queries.jsonl", ({"_id": id, "text": text} for id, text in asked.items()))
    shifted = {
        id: {f"d{(int(id[1:]) + 1) % len(things)}": 1} for id in asked
    }  # what is sought is always the next thing
    small_sets.qrels(folder / "qrels" / "test.tsv", shifted)
    encoder = WordLlamaEncoder()
    (folder / "embeddings").mkdir()
    for name, rows in (
        ("corpus", encoder.documents(list(texts.values()))),
        ("queries", encoder.queries(list(asked.values()))),
    ):
        np.save(folder / "embeddings" / f"all-MiniLM-L6-v2.{name}.npy", rows)
    return folder


@pytest.mark.parametrize("policy", ["none", "paper"])
def test_vectors_beside_a_set_behave_as_the_encoder_that_made_them(
    sentences: Path, tmp_path: Path, policy: str
) -> None:
    made, given = (
        outcome(sentences, tmp_path, policy=policy, encoder=encoder, protocol="holdout", rate=0.7)
        for encoder in ("wordllama", "all-MiniLM-L6-v2")
    )
    assert (made["vectors"], given["vectors"]) == ("encoded", "given")
    assert made["values"] == given["values"]
    assert made["taught_values"] == given["taught_values"]


def test_vectors_beside_a_set_learn_as_much_though_other_words_are_simulated_in_another_way(
    sentences: Path, tmp_path: Path
) -> None:
    untaught, made, given = (
        outcome(sentences, tmp_path, policy=policy, encoder=encoder, protocol="holdout", rate=0.7)
        for policy, encoder in (("none", "wordllama"), ("guarded", "wordllama"), ("guarded", "all-MiniLM-L6-v2"))
    )
    assert ndcg(made, "taught") == ndcg(given, "taught") == 1 > ndcg(untaught, "taught")


@pytest.mark.parametrize("policy", ["nudge-n", "nudge-m"])
def test_nudge_learns_from_dense_vectors_given_or_made(sentences: Path, tmp_path: Path, policy: str) -> None:
    pytest.importorskip("nudge", reason="NUDGE stands beside evokey with: pip install 'evokey[peers]'")
    found = [
        outcome(sentences, tmp_path, policy=policy, encoder=encoder, protocol="holdout", rate=0.8)
        for encoder in ("wordllama", "all-MiniLM-L6-v2")
    ]
    untaught = outcome(sentences, tmp_path, policy="none", encoder="wordllama", protocol="holdout", rate=0.8)
    assert found[0]["values"] == found[1]["values"]
    assert ndcg(found[0], "taught") > ndcg(untaught, "taught") + 0.1
    assert found[0]["report"]["validation"] == 5


def test_a_wording_without_a_vector_beside_the_set_is_encoded(sentences: Path, tmp_path: Path) -> None:
    folder = tmp_path / "worded"
    folder.mkdir()
    for name in ("corpus.jsonl", "queries.jsonl", "qrels", "embeddings"):
        (folder / name).symlink_to(sentences / name)
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    small_sets.lines(folder / "query_forms.jsonl", ({**row, "text": f"once more: {row['text']}"} for row in rows))
    data = load(folder)
    dealt = runs.protocols.split(data, "same-intent")
    assert runs._must_encode(replace(RUN, data=str(folder)), data, dealt)
    assert not runs._must_encode(replace(RUN, data=str(sentences)), data, runs.protocols.split(data, "holdout"))


# ---- the guarded policy without one of its parts


@pytest.mark.parametrize("policy", ABLATIONS)
def test_every_ablation_learns_or_says_it_did_not(tmp_path: Path, policy: str) -> None:
    folder = small_sets.recorded(small_sets.gap(tmp_path / "gap"))
    found = outcome(folder, tmp_path, policy=policy, units="oracle", protocol="holdout", rate=0.6)
    untaught = outcome(folder, tmp_path, policy="none", protocol="holdout", rate=0.6)
    assert found["queries"] == untaught["queries"]
    assert ndcg(found) >= ndcg(untaught)


def test_without_learned_words_the_gap_stays_open(tmp_path: Path) -> None:
    folder = small_sets.gap(tmp_path / "gap")
    assert ndcg(outcome(folder, tmp_path, policy="no-words")) == 0


def test_without_rows_no_choice_has_rows_and_a_fixed_step_is_fixed(sentences: Path, tmp_path: Path) -> None:
    options = {"encoder": "wordllama", "protocol": "holdout", "rate": 0.8}
    rows = outcome(sentences, tmp_path, policy="no-rows", **options)["report"]["choice"]["wordllama"]
    assert (rows["penalty"], rows["step"] > 0) == (None, True)
    step = outcome(sentences, tmp_path, policy="fixed-step", **options)["report"]["choice"]["wordllama"]
    assert step["step"] in (0.0, 1.0)


def test_crediting_what_was_retrieved_moves_more_documents_than_crediting_what_was_right(
    sentences: Path, tmp_path: Path
) -> None:
    options = {"encoder": "wordllama", "protocol": "holdout", "rate": 0.8}
    lab = systems.Lab(load(sentences), "wordllama", tmp_path)
    dealt = runs.protocols.split(lab.data, "holdout", rate=0.8)
    found = {}
    for policy in ("guarded", "credit-retrieved", "no-guard"):
        found[policy] = outcome(sentences, tmp_path, policy=policy, **options)
    right = frozenset().union(*(one.right for one in dealt.taught))
    assert ndcg(found["guarded"], "taught") > ndcg(found["credit-retrieved"], "taught")
    assert ndcg(found["no-guard"], "taught") >= ndcg(found["guarded"], "taught")
    assert len(right) < 16


def test_a_system_that_cannot_take_part_says_why() -> None:
    assert systems.fits("nudge-n", "bm25", None) == "nudge-n moves dense vectors; bm25 has others"
    assert systems.fits("nudge-n", "hybrid", None) == "nudge-n moves dense vectors; hybrid has others"
    assert systems.fits("bm25s", "wordllama", None) == "bm25s stands beside bm25 alone"
    assert systems.fits("no-words", "wordllama", None) == "wordllama does not go by words"
    assert systems.fits("units-only", "bm25", None) == (
        "units-only is about expansion units: teach some with --units NAME"
    )
    assert systems.fits("no-negatives", "bm25", None) == (
        "no-negatives is about documents that were named wrong: have some named with --wrong 10"
    )
    assert systems.fits("no-negatives", "bm25", None, wrong=10) is None
    assert systems.fits("guarded", "bm25", None) is None
    with pytest.raises(InvalidInput, match="no policy 'magic'; choose of: none, guarded, paper"):
        systems.fits("magic", "bm25", None)


def test_the_papers_rule_takes_options_and_counts_what_passed_its_gate(sentences: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"encoder": "wordllama", "protocol": "holdout", "rate": 0.7}
    rules = ("paper:gate=0,retrieved=3", "paper:retrieved=3", "paper")
    every, three, ten = (outcome(sentences, tmp_path, policy=one, **given)["report"] for one in rules)
    assert every["passed"] == every["lessons"]
    assert 0 < three["passed"] < ten["passed"] < ten["lessons"]


def test_the_papers_rule_may_credit_right_documents_alone(tmp_path: Path) -> None:
    given: dict[str, Any] = {"protocol": "holdout", "rate": 0.5}
    folder = small_sets.magnet(tmp_path / "magnet")
    right, every = (outcome(folder, tmp_path, policy=one, **given) for one in ("paper-right", "paper"))
    assert right["report"]["passed"] == every["report"]["passed"] == right["counts"]["taught"]
    assert ndcg(right, "taught") > ndcg(every, "taught"), "the magnet moves to every query that retrieves it"


@pytest.mark.parametrize("policy", ["paper", "guarded"])
def test_the_whole_pipeline_expands_searches_verifies_and_learns(tmp_path: Path, policy: str) -> None:
    folder = small_sets.recorded(small_sets.gap(tmp_path / "gap"))
    given: dict[str, Any] = {"policy": policy, "verifier": "labels", "protocol": "holdout", "rate": 0.5}
    found, plain = (outcome(folder, tmp_path, units=units, **given) for units in ("oracle", None))
    assert plain["report"]["lessons"] == 0, "the plain queries of this set find nothing, so nothing is verified"
    assert found["report"]["lessons"] == found["counts"]["taught"]
    named = outcome(folder, tmp_path, units="prf:terms=4", **given)
    assert named["report"]["lessons"] == 0, "an expander by its name reads what the plain query finds: nothing, here"
    assert ndcg(found, "taught") > ndcg(plain, "taught") or policy == "paper"
