from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_key_builders import SMALL

from evokey.keys.chunks import MOST, Chunks
from evokey.keys.full import Full
from evokey.keys.sentences import size
from evokey.types import Document


def chunks(text: str, title: str = "", tokens: int = 20, overlap: int = 0) -> list[str]:
    return [row.text for row in Chunks(tokens, overlap).rows(Document("1", text, title), SMALL)]


def sentence(number: int, words: int = 9) -> str:
    """Ten tokens, all its own."""
    return " ".join(f"s{number}w{word}" for word in range(words)) + "."


def test_a_short_document_is_one_chunk_the_same_as_full() -> None:
    document = Document("1", "# A\n\nShort text.\n\n# B\n\nMore.\n", "Title")
    assert Chunks().rows(document, SMALL) == Full().rows(document, SMALL)
    assert chunks("", "Only a title") == ["Only a title"]


def test_sentences_stay_whole() -> None:
    found = chunks(" ".join(sentence(number) for number in range(5)))
    assert found == [
        f"{sentence(0)} {sentence(1)}",
        f"{sentence(2)} {sentence(3)}",
        sentence(4),
    ]


def test_overlap_repeats_the_last_sentences_that_fit_into_it() -> None:
    found = chunks(" ".join(sentence(number) for number in range(4)), tokens=30, overlap=10)
    assert found == [
        f"{sentence(0)} {sentence(1)} {sentence(2)}",
        f"{sentence(2)} {sentence(3)}",
    ]
    assert chunks(" ".join(sentence(number) for number in range(4)), tokens=30, overlap=9)[1] == sentence(3)


def test_a_heading_begins_a_chunk_and_each_chunk_says_where_it_stands() -> None:
    text = f"{sentence(0)}\n\n# Engines\n\n## Steam\n\n{sentence(1)} {sentence(2)}\n\n## Gas ##\n\n{sentence(3)}"
    assert chunks(text, "Power", tokens=24) == [
        f"Power\n{sentence(0)}",
        f"Power\n# Engines\n\n## Steam\n\n{sentence(1)}",
        f"Power > Engines > Steam\n{sentence(2)}",
        f"Power > Engines\n## Gas ##\n\n{sentence(3)}",
    ]


def test_overlap_does_not_cross_a_heading() -> None:
    found = chunks(f"# A\n\nAlpha. {sentence(0)} Beta.\n\n# B\n\nGamma. {sentence(1)}", tokens=20, overlap=5)
    assert [chunk.count("Beta") for chunk in found] == [1, 0]


def test_underlined_headings_count_and_a_heading_like_the_title_is_said_once() -> None:
    text = f"Power\n=====\n\n{sentence(0)} {sentence(1)}\n\nGas\n---\n\n{sentence(2)}"
    assert chunks(text, "Power", tokens=16) == [
        f"Power\nPower\n=====\n\n{sentence(0)}",
        f"Power\n{sentence(1)}",
        f"Power\nGas\n---\n\n{sentence(2)}",
    ]


def test_code_and_tables_stay_whole_where_they_fit() -> None:
    code = "```python\n# not a heading\nx = 1. Or\ny = 2\n```"
    table = "| a | b |\n|---|---|\n| 1. One | 2 |"
    found = chunks(f"{sentence(0)}\n\n{code}\n\n{sentence(1)}\n\n{table}\n\n{sentence(2)}", tokens=22)
    assert any(code in chunk for chunk in found)
    assert any(table in chunk for chunk in found)


def test_a_long_code_block_is_cut_between_lines() -> None:
    lines = [f"call_{number}(alpha, beta)" for number in range(30)]
    found = chunks("```\n" + "\n".join(lines) + "\n```", tokens=40)
    assert len(found) > 5
    assert all(sum(line in chunk for chunk in found) == 1 for line in lines)


def test_a_long_title_leaves_room_for_the_text() -> None:
    found = chunks(" ".join(sentence(number) for number in range(3)), "long " * 50, tokens=30)
    assert found == [f"{('long ' * 10).strip()}\n{part}" for part in (f"{sentence(0)} {sentence(1)}", sentence(2))]


def test_a_document_of_headings_does_not_fall_into_a_chunk_for_each() -> None:
    apart = chunks("# a\nb c\n" * MOST, tokens=64)
    together = chunks("# a\nb c\n" * (MOST + 1), tokens=64)
    assert len(apart) == MOST
    assert len(together) < MOST / 5


blocks = st.lists(
    st.one_of(
        st.tuples(st.just("sentence"), st.integers(1, 60)),
        st.tuples(st.just("heading"), st.integers(1, 8)),
        st.tuples(st.just("code"), st.integers(1, 12)),
        st.tuples(st.just("table"), st.integers(1, 12)),
        st.tuples(st.just("paragraph"), st.just(0)),
    ),
    max_size=25,
)


def written(parts: list[tuple[str, int]]) -> str:
    """A Markdown text of which no word comes twice."""
    text = ""
    for number, (kind, length) in enumerate(parts):
        words = [f"p{number}x{word}" for word in range(length)]
        if kind == "sentence":
            text += " ".join(words) + ". "
        elif kind == "heading":
            text += f"\n\n{'#' * (1 + length % 3)} {' '.join(words)}\n\n"
        elif kind == "code":
            text += "\n\n```\n" + "\n".join(f"{word} = {word}y" for word in words) + "\n```\n\n"
        elif kind == "table":
            text += "\n\n" + "\n".join(f"| {word} | {word}y |" for word in words) + "\n\n"
        else:
            text += "\n\n"
    return text


@given(blocks, st.sampled_from(["", "Title", "A title of a few more words"]), st.integers(16, 60), st.integers(0, 8))
def test_every_word_is_in_some_chunk_in_order_and_no_chunk_is_too_long(
    parts: list[tuple[str, int]], title: str, tokens: int, overlap: int
) -> None:
    text = written(parts)
    found = chunks(text, title, tokens, overlap)
    assert all(size(chunk) <= tokens for chunk in found)
    stream = iter(word for chunk in found for word in chunk.split())
    missing = [word for word in text.split() if word.startswith("p") and word not in stream]
    assert missing == []


@given(st.lists(st.integers(1, 40), min_size=2, max_size=30), st.integers(16, 60), st.integers(0, 8))
def test_two_neighbours_share_no_more_than_the_overlap_and_only_whole_sentences(
    lengths: list[int], tokens: int, overlap: int
) -> None:
    texts = [sentence(number, length) for number, length in enumerate(lengths)]
    found = chunks(" ".join(texts), "", tokens, overlap)
    for one, other in pairwise(found):
        shared = [word for word in one.split() if word in set(other.split())]
        assert size(" ".join(shared)) <= overlap
        assert other.startswith(" ".join(shared))
        assert one.endswith(" ".join(shared))
        assert other.split()[-1] not in one.split()


@given(st.lists(st.integers(1, 12), min_size=1, max_size=30), st.integers(16, 40))
def test_a_sentence_that_fits_is_never_cut(lengths: list[int], tokens: int) -> None:
    texts = [sentence(number, length) for number, length in enumerate(lengths)]
    found = chunks(" ".join(texts), "", tokens, 5)
    assert all(any(text in chunk for chunk in found) for text in texts)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=2_000), st.integers(16, 40))
def test_of_any_text_no_character_is_lost(text: str, tokens: int) -> None:
    found = chunks(text, "", tokens)
    if "#" not in text:
        assert "".join("".join(found).split()) == "".join(text.split())
    assert all(size(chunk) <= tokens for chunk in found)


@pytest.mark.parametrize("word", ["x" * 3_000, "今" * 500, "—" * 2_000])
def test_a_word_longer_than_a_chunk_is_cut(word: str) -> None:
    found = chunks(word, "", 50)
    assert "".join(found) == word
    assert {size(chunk) for chunk in found[:-1]} == {50}
