"""Encoders behind HTTP, against a real server that speaks as their providers do."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import Opener
from wire import Reply, Wire

import evokey
from evokey import registry
from evokey.encoders.cohere import Cohere
from evokey.encoders.openai import OpenAI
from evokey.encoders.remote import Remote
from evokey.encoders.voyage import Voyage
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.errors import InvalidSettings, ServiceFailed

TEXTS = ["a cat sat on the mat", "", "dogs bark at night", "  \n", "naïve café 猫"]
Maker = Callable[..., Remote]


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire() as server:
        yield server


@pytest.fixture(params=["openai", "cohere", "voyage"])
def encoder(request: pytest.FixtureRequest, wire: Wire) -> Maker:
    base_url = f"{wire.host}/v2" if request.param == "cohere" else wire.url

    def make(**options: Any) -> Remote:
        made: Remote = registry.build("encoder", {"name": request.param, "base_url": base_url, "retries": 0, **options})
        return made

    return make


def wrong(encoder: Remote, rows: list[Any]) -> Any:
    """An answer of the encoder's provider with these vectors."""
    if isinstance(encoder, Cohere):
        return {"embeddings": {"float": rows}}
    return {"data": [{"index": index, "embedding": row} for index, row in enumerate(rows)]}


def sent_texts(wire: Wire) -> list[list[str]]:
    return [request.body.get("input", request.body.get("texts")) for request in wire.requests]


def test_texts_become_unit_vectors_in_their_order_and_empty_ones_zeros_unsent(encoder: Maker, wire: Wire) -> None:
    expected = WordLlamaEncoder().documents(TEXTS)
    expected[[1, 3]] = 0
    for encode in (encoder().documents, encoder().queries):
        vectors = encode(TEXTS)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert sent_texts(wire) == [[TEXTS[0], TEXTS[2], TEXTS[4]]] * 2


def test_no_texts_and_empty_texts_cost_nothing_where_the_dimension_is_known(encoder: Maker, wire: Wire) -> None:
    assert encoder().documents([]).shape[0] == 0
    assert encoder(dimensions=256).documents(["", " "]).tolist() == np.zeros((2, 256)).tolist()
    assert wire.requests == []
    assert encoder().documents([""]).tolist() == np.zeros((1, 256)).tolist()
    assert len(wire.requests) == 1


def test_batches_hold_so_many_texts_and_come_back_in_order(encoder: Maker, wire: Wire) -> None:
    texts = [f"text number {number}" for number in range(23)]
    vectors = encoder(batch_size=5, parallel=4).documents(texts)
    np.testing.assert_allclose(vectors, WordLlamaEncoder().documents(texts), atol=1e-6)
    assert sorted(map(len, sent_texts(wire))) == [3, 5, 5, 5, 5]


def test_a_request_holds_no_more_tokens_than_the_provider_takes(wire: Wire) -> None:
    texts = [f"{number} " + "word " * 3000 for number in range(60)]
    OpenAI(base_url=wire.url).documents(texts)
    sizes = [sum(len(text) for text in batch) for batch in sent_texts(wire)]
    assert len(sizes) == 2 and max(sizes) <= 600_000


def test_a_long_text_is_cut_by_bytes_and_never_inside_a_character(encoder: Maker, wire: Wire) -> None:
    encoder(max_tokens=50).documents(["é" * 1000, "x" * 99, "y" * 101, "猫" * 40])
    (texts,) = sent_texts(wire)
    assert texts == ["é" * 50, "x" * 99, "y" * 100, "猫" * 33]


def test_what_was_asked_adds_up(encoder: Maker) -> None:
    one = encoder(price=2.0, batch_size=1)
    one.documents(["three little words", "two words"])
    one.queries(["alone"])
    assert (one.spent.calls, one.spent.prompt_tokens) == (3, 6)
    assert one.spent.money == pytest.approx(12e-6)
    assert one.spent.seconds > 0


def test_each_provider_is_told_the_side_in_its_own_words(wire: Wire) -> None:
    Voyage(base_url=wire.url, dimensions=64).documents(["a cat"])
    Voyage(base_url=wire.url).queries(["a cat"])
    Cohere(base_url=f"{wire.host}/v2").documents(["a cat"])
    Cohere(base_url=f"{wire.host}/v2").queries(["a cat"])
    OpenAI(base_url=wire.url, model="text-embedding-3-large", dimensions=32).queries(["a cat"])
    assert [(request.path, request.body) for request in wire.requests] == [
        (
            "/v1/embeddings",
            {
                "model": "voyage-2",
                "input": ["a cat"],
                "input_type": "document",
                "truncation": True,
                "output_dimension": 64,
            },
        ),
        ("/v1/embeddings", {"model": "voyage-2", "input": ["a cat"], "input_type": "query", "truncation": True}),
        *(
            (
                "/v2/embed",
                {
                    "model": "embed-english-v3.0",
                    "texts": ["a cat"],
                    "input_type": side,
                    "embedding_types": ["float"],
                    "truncate": "END",
                },
            )
            for side in ("search_document", "search_query")
        ),
        (
            "/v1/embeddings",
            {
                "model": "text-embedding-3-large",
                "input": ["a cat"],
                "encoding_format": "base64",
                "dimensions": 32,
            },
        ),
    ]


def test_the_identity_says_model_place_dimension_and_norm(wire: Wire) -> None:
    assert OpenAI().identity == "openai/text-embedding-3-small@api/1536/unit"
    assert OpenAI(dimensions=256).identity == "openai/text-embedding-3-small@api/256/unit"
    assert OpenAI(model="new").identity == "openai/new@api/?/unit"
    assert Cohere().identity == "cohere/embed-english-v3.0@api/1024/unit"
    assert Voyage().identity == "voyage/voyage-2@api/1024/unit"
    place = wire.host.removeprefix("http://")
    assert OpenAI(base_url=wire.url).identity == f"openai/text-embedding-3-small@{place}/?/unit"
    assert OpenAI(base_url=wire.url, revision="mine").identity == "openai/text-embedding-3-small@mine/?/unit"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1.0, 0.0]], "1 (entries|vectors) for 2 texts"),
        ([[1.0, 0.0]] * 3, "3 (entries|vectors) for 2 texts"),
        ([[1.0, 0.0], [1.0, float("nan")]], "not finite"),
        ([[1.0, 0.0], [1.0, float("inf")]], "not finite"),
        ([[1.0, 0.0], [1.0]], "all of one length"),
        ([[1.0, 0.0], None], "no lists of numbers"),
        ([[1.0, 0.0], ["1", "0"]], "no lists of numbers"),
        ([[1.0, 0.0], [True, False]], "no lists of numbers"),
        ([[], []], "no lists of numbers"),
        (["", ""], "no lists of numbers"),
        (["AAA", "AAA"], "no lists of numbers"),
        ([[10**400, 1]] * 2, "a whole number beyond"),
        ([[1.0, 2.0, 3.0]] * 2, "3 dimensions where .* has 2"),
        ([[1e200, 1e-200], [0, 0]], None),
    ],
)
def test_an_answer_wrong_in_one_place_is_refused_whole(
    encoder: Maker, wire: Wire, rows: list[Any], said: str | None
) -> None:
    one = encoder(dimensions=2)
    wire.first = [Reply(body=wrong(one, rows))]
    if said is None:
        assert one.documents(["a", "b"]).tolist() == [[1, 0], [0, 0]]
        return
    with pytest.raises(ServiceFailed, match=said):
        one.documents(["a", "b"])


@pytest.mark.parametrize("indexes", [[0, 0], [1, 2], [0, None], ["0", "1"], [False, True], [-1, 0]])
def test_wrong_indexes_are_refused(wire: Wire, indexes: list[Any]) -> None:
    wire.first = [Reply(body={"data": [{"index": index, "embedding": [1.0]} for index in indexes]})]
    with pytest.raises(ServiceFailed, match="numbered the entries of its answer wrongly: each of 0 to 1"):
        OpenAI(base_url=wire.url).documents(["a", "b"])


@pytest.mark.parametrize("body", [{}, {"data": None}, {"data": [1]}, {"embeddings": [[1.0]]}, {"usage": 3, "data": {}}])
def test_an_answer_of_another_shape_is_refused(encoder: Maker, wire: Wire, body: Any) -> None:
    wire.first = [Reply(body=body)]
    with pytest.raises(ServiceFailed, match="sent an answer without"):
        encoder().documents(["a"])


def test_base64_and_numbers_give_the_same_vector(wire: Wire) -> None:
    row = np.array([0.1, -0.7, 3.25], np.float32)
    packed = base64.b64encode(row.astype("<f4").tobytes()).decode()
    wire.first = [Reply(body={"data": [{"index": 0, "embedding": one}]}) for one in (packed, row.tolist())]
    one = OpenAI(base_url=wire.url)
    assert one.documents(["a"]).tobytes() == one.documents(["a"]).tobytes()


def test_a_server_that_changes_its_dimension_is_refused(wire: Wire) -> None:
    one = OpenAI(base_url=wire.url, model="m")
    one.documents(["a"])
    wire.first = [Reply(body={"data": [{"index": 0, "embedding": [1.0, 2.0]}]})]
    with pytest.raises(ServiceFailed, match="2 dimensions where m has 256"):
        one.documents(["b"])


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            Reply(401, {"error": {"message": "Incorrect API key provided"}}),
            "401: Incorrect API key provided. No key was",
        ),
        (Reply(400, {"message": "invalid model"}), "400: invalid model. Check the options"),
        (Reply(500, {}), "answered 500. Try again later"),
        (Reply(200, b"{"), "not JSON"),
    ],
)
def test_faults_are_told_by_the_name_of_the_provider(encoder: Maker, wire: Wire, reply: Reply, said: str) -> None:
    wire.first = [reply]
    one = encoder()
    with pytest.raises(ServiceFailed, match=f"^{one.provider.name} .*{said}"):
        one.documents(["a"])


def test_a_provider_at_home_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for made, name in ((OpenAI(), "OPENAI_API_KEY"), (Cohere(), "COHERE_API_KEY"), (Voyage(), "VOYAGE_API_KEY")):
        monkeypatch.delenv(name, raising=False)
        with pytest.raises(ServiceFailed, match=f"environment variable {name} is not set"):
            made.documents(["a"])


@pytest.mark.parametrize(
    "options", [{"batch_size": 0}, {"batch_size": 5000}, {"max_tokens": 0}, {"dimensions": 0}, {"price": -1},
                {"colour": "red"}, {"base_url": "nowhere"}, {"parallel": "four"}]
)  # fmt: skip
def test_options_that_make_no_encoder_are_refused(encoder: Maker, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        encoder(**options)


def test_a_memory_over_http_finds_what_the_same_model_finds_here(
    wire: Wire, opened: Opener, commands: list[evokey.Document]
) -> None:
    here = opened("here", encoder="wordllama")
    there = opened("there", encoder={"name": "openai", "model": "wordllama", "base_url": wire.url})
    for memory in (here, there):
        memory.add(commands)
    for query in ("undo a change", "who wrote this line", "find the bug"):
        assert [hit.id for hit in there.search(query)] == [hit.id for hit in here.search(query)]
    there.close()
    assert opened("there").search("who wrote this line")[0].id == "git-blame"
