"""A reranker behind HTTP, against a real server, in both wire formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from wire import Reply, Wire

from evokey.errors import InvalidSettings, ServiceFailed
from evokey.search.rerankers.endpoint import Endpoint
from evokey.types import Document

QUERY = "undo a change"
DOCUMENTS = [
    Document("log", "Show the history"),
    Document("revert", "undo a change", "git revert"),
    Document("reset", "undo all"),
    Document("none", ""),
]
EXPECTED = [0, 1, 1 / 3, 0]


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire() as server:
        yield server


def made(wire: Wire, format: str, **options: Any) -> Endpoint:
    return Endpoint(
        format=format,  # type: ignore[arg-type]
        base_url=wire.host if format == "tei" else f"{wire.host}/v2",
        retries=0,
        **options,
    )


@pytest.mark.parametrize("format", ["cohere", "tei"])
@pytest.mark.parametrize("batch_size", [None, 1, 3])
def test_each_document_gets_its_own_score(wire: Wire, format: str, batch_size: int | None) -> None:
    reranker = made(wire, format, batch_size=batch_size)
    scores = reranker.scores(QUERY, DOCUMENTS)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, EXPECTED)
    assert reranker.spent.calls == {None: 1, 1: 4, 3: 2}[batch_size]


def test_the_body_is_what_each_format_asks_for(wire: Wire) -> None:
    made(wire, "cohere", model="rerank-v3.5").scores(QUERY, DOCUMENTS[:2])
    made(wire, "tei", longest=8).scores(QUERY, DOCUMENTS[:2])
    texts = ["Show the history", "git revert\nundo a change"]
    assert [(request.path, request.body) for request in wire.requests] == [
        ("/v2/rerank", {"model": "rerank-v3.5", "query": QUERY, "documents": texts, "top_n": 2}),
        ("/rerank", {"query": QUERY, "texts": ["Show the", "git reve"], "truncate": True}),
    ]


def test_no_documents_are_no_call(wire: Wire) -> None:
    assert made(wire, "cohere").scores(QUERY, []).shape == (0,)
    assert wire.requests == []


@pytest.mark.parametrize("format", ["cohere", "tei"])
@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([(0, 1.0)], "1 entries for 2 texts"),
        ([(0, 1.0), (0, 2.0)], "numbered the entries"),
        ([(0, 1.0), (2, 2.0)], "numbered the entries"),
        ([(0, 1.0), (1, float("nan"))], "no finite number: 'nan'"),
        ([(0, 1.0), (1, None)], "no finite number: 'None'"),
        (None, "without a list of entries"),
    ],
)
def test_a_wrong_answer_is_refused_whole(wire: Wire, format: str, results: Any, said: str) -> None:
    name = "score" if format == "tei" else "relevance_score"
    entries = results and [{"index": index, name: score} for index, score in results]
    wire.first = [Reply(body=entries if format == "tei" else {"results": entries})]
    with pytest.raises(ServiceFailed, match=said):
        made(wire, format).scores(QUERY, DOCUMENTS[:2])


def test_the_identity_names_model_and_place(wire: Wire) -> None:
    assert Endpoint().identity == "endpoint/rerank-v3.5@api"
    assert made(wire, "cohere", model="m", revision="2").identity == "endpoint/m@2"
    assert made(wire, "tei", model="m").identity == f"endpoint/m@{wire.host.removeprefix('http://')}"


def test_cohere_itself_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COHERE_API_KEY", raising=False)
    with pytest.raises(ServiceFailed, match="COHERE_API_KEY is not set"):
        Endpoint().scores(QUERY, DOCUMENTS)


@pytest.mark.parametrize("options", [{"format": "xml"}, {"format": "tei"}, {"batch_size": 0}, {"longest": 0}])
def test_options_that_make_no_reranker_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        Endpoint(**options)
