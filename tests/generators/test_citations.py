"""What an answer cites, however a model writes it: only passages there are, in order, and shown in one way."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokey.generators.citations import certain, citation_numbers, tidy_answer

PASSAGES = 5


@pytest.mark.parametrize(
    ("written", "seen", "numbers"),
    [
        ("It was May [1].", "It was May [1].", [1]),
        ("A [1, 2] and B [2;3] and C [1 and 4].", "A [1][2] and B [2][3] and C [1][4].", [1, 2, 3, 4]),
        ("A [3-1] and B [2–9].", "A [1][2][3] and B [2][3][4][5].", [1, 2, 3, 4, 5]),
        ("A [1]-[3], B [5] [4].", "A [1][2][3], B [5][4].", [1, 2, 3, 5, 4]),
        ("【2†source】 and 【1】", "[2] and [1]", [2, 1]),
        ("A footnote[^2], a double one [[3]], ［4］", "A footnote[2], a double one [3][4]", [2, 3, 4]),
        ("So it was (1), and so (2, 3).", "So it was [1], and so [2][3].", [1, 2, 3]),
        ("It rained (1) and (2).", "It rained [1] and [2].", [1, 2]),
        ("(1) first, (2) second, in (2023).", "(1) first, (2) second, in (2023).", []),
        ("Passage 2 says so, and so do Passages 1 and 3.", "[2] says so, and so do [1][3].", [2, 1, 3]),
        ("[Passage 1, Passage 2] say so.", "[1][2] say so.", [1, 2]),
        ("Passage 9 and Document 2023 say so.", "Passage 9 and Document 2023 say so.", []),
        ("A [9] b [0], c [1, 9].", "A b, c [1].", [1]),
        ("[9] A line.\n[8] Another.", "A line.\nAnother.", []),
        ("Use `row[1]` as in `[2]`.", "Use `row[1]` as in [2].", [2]),
        ("```\nx[1]\n``` and so on [3].", "```\nx[1]\n``` and so on [3].", [3]),
        ("It was cut off [1][", "It was cut off [1]", [1]),
        ("It was cut off [1, 2", "It was cut off", []),
        ("**Answer:** May [2].", "May [2].", [2]),
        ("<answer>\nMay [2].</answer>", "May [2].", [2]),
        ("May [2].\n\nSources:\n[1] A\n[2] B", "May [2].", [2]),
        ("It was May.\n\nSources: [1], [2]", "It was May.\n\nSources: [1][2]", [1, 2]),
        ("[ [9] 1] is what is left.", "[1] is what is left.", [1]),
    ],
)
def test_marks_are_read_in_every_way_they_are_written_and_shown_in_one(
    written: str, seen: str, numbers: list[int]
) -> None:
    assert tidy_answer(written, PASSAGES) == seen
    assert citation_numbers(seen) == numbers


@pytest.mark.parametrize(
    "said",
    [
        "Not in the passages.",
        "NOT IN THE PASSAGES",
        "The passages do not mention when it was.",
        "The provided context doesn't specify the date of the trip.",
        "The passages [1]-[5] do not contain the answer.",
        "None of the passages mentions her age.",
        "I don't know.",
        "I'm sorry, but I cannot find the answer in the passages.",
        "Unfortunately, there is no information about this.",
        "Based on the given passages, I cannot determine the date.",
        "Her age is not mentioned in the passages.",
        "It cannot be determined from the context.",
        "Unknown.",
        "[9]",
        "—",
    ],
)
def test_an_honest_non_answer_has_no_text(said: str) -> None:
    assert tidy_answer(said, PASSAGES) == ""


@pytest.mark.parametrize(
    "said",
    [
        'She said "I don\'t know" [1].',
        "The passages do not say when, but the trip was announced for May [2].",
        "No, it was not found in Sweden [1].",
        "No information law was passed before 1990 [3].",
        "The document does not expire [2].",
        "The cause is unknown [1].",
        "The passages do not say it outright. " + "It follows from what the first one tells about the trip [1]. " * 6,
    ],
)
def test_an_answer_that_only_sounds_like_none_stays(said: str) -> None:
    assert tidy_answer(said, PASSAGES) == said.strip()


MARKS = st.sampled_from(
    "[1] [2] [5] [6] [0] [99] [1,2] [2-4] [7-9] [4-1] [1][9] [^3] 【2】 【3†x】 (1). (2), (2023) (1) Passage 3 [[2]] "
    "[ 3 ] [ ] 【 】 ( ) , - and \n . ` ``` Sources: <passages> 1 6 † [Passage".split(" ")
)
WORDS = st.sampled_from(["the", "nasal", "cycle", "Not", "passages", "it was in May.", "  ", "\n\n", "But", "x"])
ANSWERS = st.lists(MARKS | WORDS | st.text(max_size=3), max_size=30).flatmap(
    lambda parts: st.sampled_from(["".join(parts), " ".join(parts)])
)


@given(ANSWERS, st.integers(0, 6))
def test_whatever_is_written_only_passages_that_exist_are_cited_once_each_in_order(answer: str, count: int) -> None:
    seen = tidy_answer(answer, count)
    numbers = citation_numbers(seen)
    assert all(1 <= number <= count for number in numbers)
    assert len(set(numbers)) == len(numbers)
    assert tidy_answer(seen, count) in (seen, "")
    if "`" not in seen:
        marked = [int(number) for number in re.findall(r"\[(\d+)\]", seen)]
        assert numbers == sorted(set(marked), key=marked.index)


@given(ANSWERS, st.integers(0, 6))
def test_what_is_certain_of_an_unfinished_answer_never_changes(answer: str, count: int) -> None:
    whole = tidy_answer(answer, count)
    for end in range(len(answer)):
        assert whole.startswith(certain(answer[:end], count)), answer[:end]


def test_an_answer_is_certain_soon_after_its_first_sentence() -> None:
    written = "The nasal cycle shifts the airflow [1]. It takes a few hours [2] in most people"
    assert certain(written[:39], PASSAGES) == ""
    assert certain(written, PASSAGES) == "The nasal cycle shifts the airflow [1]. It takes a few hours [2] in most"
