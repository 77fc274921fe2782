"""What every encoder of the registry promises, whatever its kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parts import ENCODERS, REMOTE, Parts
from parts import parts as parts  # the fixture

from evokey import registry
from evokey.search.retriever import remember_taught

TEXTS = [
    "owls hunt mice at night",
    "",
    "the sun is a star of gas and dust",
    "birds",
    " \n\t",
    "what do they eat by day and what do owls eat at night",
    "owls hunt mice at night",
]
SAID = [0, 2, 3, 5, 6]
SIDES = ("documents", "queries")
MADE = tuple(name for name in ENCODERS if name != "given")


@pytest.fixture(params=MADE)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(parts: Parts, name: str, **more: Any) -> Any:
    return registry.build("encoder", {"name": name, **parts.options(name), **more})


def same(first: Any, second: Any, within: float) -> bool:
    """Whether two texts have the same vector, matrix or bag."""
    if isinstance(first, np.ndarray):
        return first.shape == second.shape and bool(np.allclose(first, second, atol=within, rtol=0))
    words = first.keys() | second.keys()  # weights that a model makes have no bound: within a share of the largest
    within *= max(1.0, *first.values(), *second.values()) if words else 1.0
    return all(abs(first.get(word, 0) - second.get(word, 0)) <= within for word in words)


@pytest.mark.parametrize("side", SIDES)
def test_the_form_of_what_comes_back(parts: Parts, name: str, side: str) -> None:
    encoder = made(parts, name)
    assert registry.encoder_kind(name, parts.options(name)) == encoder.kind
    assert encoder.cost in ("nothing", "time", "money")
    found = getattr(encoder, side)(TEXTS)
    assert len(found) == len(TEXTS)
    if encoder.kind == "dense":
        assert found.dtype == np.float32 and found.ndim == 2
        norms = np.linalg.norm(found, axis=1)
        assert norms[SAID] == pytest.approx(1, abs=1e-5)
        assert not norms[[1, 4]].any()
    elif encoder.kind == "multi":
        width = found[0].shape[1]
        for row, matrix in enumerate(found):
            assert matrix.dtype == np.float32
            assert matrix.shape[1:] == (width,)
            assert bool(len(matrix)) == (row in SAID)
            assert np.linalg.norm(matrix, axis=1) == pytest.approx(1, abs=1e-5)
    else:
        assert found[1] == found[4] == {}
        assert any(found[row] for row in SAID)
        for row in SAID:
            assert all(isinstance(word, str) and weight > 0 for word, weight in found[row].items())
        assert encoder.idf(10, 3) >= 0
        pivots = encoder.pivots(np.array([1.0, 5.0]), 3.0)
        assert pivots is None or (pivots > 0).all()


@pytest.mark.parametrize("side", SIDES)
def test_a_text_has_the_same_vector_alone_in_company_and_again(parts: Parts, name: str, side: str) -> None:
    encode = getattr(made(parts, name), side)
    together = encode(TEXTS)
    assert same(together[0], together[6], 1e-5)
    assert not same(together[0], together[2], 1e-3)
    backwards = encode(TEXTS[::-1])[::-1]
    for row, text in enumerate(TEXTS):
        assert same(encode([text])[0], together[row], 1e-5)
        assert same(backwards[row], together[row], 1e-5)
    again = getattr(made(parts, name), side)(TEXTS)
    assert all(same(first, second, 1e-6) for first, second in zip(again, together, strict=True))


@pytest.mark.parametrize("side", SIDES)
def test_no_texts_give_nothing(parts: Parts, name: str, side: str) -> None:
    encoder = made(parts, name)
    assert len(getattr(encoder, side)([])) == 0
    silent = getattr(encoder, side)(["", " "])
    assert len(silent) == 2
    assert not any(np.any(one) if isinstance(one, np.ndarray) else one for one in silent)


def test_odd_texts_are_taken(parts: Parts, name: str) -> None:
    encoder = made(parts, name)
    odd = ["😀", "owls " * 3000, "naïve café 猫", "\x00", "a\u200bb", "?!"]
    for side in SIDES:
        found = getattr(encoder, side)(odd)
        assert len(found) == len(odd)
        for one in found:
            values = one if isinstance(one, np.ndarray) else np.array(list(one.values()))
            assert np.isfinite(values).all()


def test_texts_kept_encoded_are_as_they_were(parts: Parts, name: str, tmp_path: Any) -> None:
    encoder = made(parts, name)
    around = remember_taught(encoder, tmp_path)
    assert (around is encoder) == (encoder.cost == "nothing" or name == "cached")
    assert (around.identity, around.kind, around.cost) == (encoder.identity, encoder.kind, encoder.cost)
    for side in SIDES:
        plain, first = getattr(encoder, side)(TEXTS), getattr(around, side)(TEXTS)
        again = getattr(remember_taught(encoder, tmp_path), side)(TEXTS)
        for row in range(len(TEXTS)):
            assert same(first[row], plain[row], 1e-5)
            assert same(first[row], again[row], 0)


def test_the_identity_is_the_same_again_and_another_for_other_vectors(parts: Parts) -> None:
    identities = {}
    for name in MADE:
        try:
            encoder = made(parts, name)
        except pytest.skip.Exception:
            continue
        assert encoder.identity == made(parts, name).identity
        identities[name] = encoder.identity
    shared = {"cached": "wordllama", "onnx": "sentence-transformers"}  # the same vectors, made in another way
    for name, twin in shared.items():
        if name in identities:
            assert identities.pop(name) == identities[twin]
    assert len(set(identities.values())) == len(identities)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bm25", {"language": "german"}),
        ("all-MiniLM-L6-v2", {"query_prefix": "q: "}),
        ("all-MiniLM-L6-v2", {"document_prefix": "d: "}),
        ("all-MiniLM-L6-v2", {"max_length": 4}),
        ("token-vectors", {"max_length": 4}),
        ("bge-m3", {"max_length": 4}),
        ("bge-m3-sparse", {"max_length": 4}),
        ("bge-m3-multi", {"max_length": 4}),
        *((name, options) for name in REMOTE for options in ({"dimensions": 64}, {"model": "n"}, {"revision": "2"})),
    ],
)
def test_an_option_that_changes_vectors_changes_the_identity(parts: Parts, name: str, options: Any) -> None:
    assert made(parts, name, **options).identity != made(parts, name).identity


def test_the_two_sides_are_separate_where_a_model_tells_them_apart(parts: Parts) -> None:
    encoder = made(parts, "all-MiniLM-L6-v2", query_prefix="what do owls eat: ")
    plain = made(parts, "all-MiniLM-L6-v2")
    assert np.allclose(encoder.documents(TEXTS), plain.documents(TEXTS), atol=1e-6)
    assert not np.allclose(encoder.queries(TEXTS), plain.queries(TEXTS), atol=1e-2)
