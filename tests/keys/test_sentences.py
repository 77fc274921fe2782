from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokey.keys.sentences import cut, first, lead, sentences, size, spans

any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.text("aB1 .!?。\n#|-:\"'", max_size=200)


@pytest.mark.parametrize(
    "text",
    [
        "One ends. | Two ends! | Does three? | It does.",
        "Dr. Smith met Mrs. Jones. | They spoke.",
        "Fruit, e.g. apples, i.e. Pomes, is good. | Eat some.",
        "It rose by 3.5 to 4.25. | Then it fell.",
        "J. R. R. Tolkien wrote it. | George W. Bush read it.",
        "They lack vitamin C. | The cure is fruit.",
        "As Lee et al. showed, it works. | Others disagree.",
        "We sell nuts, bolts, etc. | They are cheap.",
        "The U.S. economy grew. | So did others.",
        "He lives in the U.S. | She does not.",
        'He asked "Why?" and left. | Nobody knew.',
        "“Stop!” | She stopped.",
        "Well... maybe not. | Wait… for it. | No.",
        "See Fig. 3 and Eq. 4. | They agree (cf. Sec. 2).",
        "the wing stalls . | the lift falls . | see fig. 1 .",
        "Visit example.com or mail a.b@c.org today. | Thanks.",
        "Das ist z.B. Holz. | Es brennt.",
        "First paragraph without a stop\n\n | second paragraph",
        "# A heading of more than forty characters, indeed\n | Text under it.",
        "- one apple\n | - two pears\n | - three plums",
        "1. Open the lid.\n | 2. Close it.",
        "Ann: hello\n | Bob: hi",
        "A line that was wrapped by an editor at some\nwidth goes on here. | And ends.",
        "今天很好。 | 我们走吧！ | 好吗？",
        "「行こう。」 | 彼は言った。",
        "كيف حالك؟ | بخير.",
        "यह एक है। | यह दो है।",
        "ថ្ងៃនេះល្អ។ | យើងទៅ។",
        "နေကောင်းလား။ | ကောင်းပါတယ်။",
        "Բարև ձեզ։ | Ինչպես եք։",
        "राम: नमस्ते\n | सीता: कैसे हो",
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str) -> None:
    wanted = [" ".join(part.split()) for part in text.split("|")]
    assert sentences(text.replace(" | ", " ").replace("\n ", "\n")) == wanted


def test_blank_text_has_no_sentence() -> None:
    assert sentences(" \n\t ") == []


@given(any_text)
def test_sentences_lie_in_order_and_leave_out_only_white_space(text: str) -> None:
    found = list(spans(text))
    ends = [0, *(end for _, end in found)]
    starts = [*(start for start, _ in found), len(text)]
    assert all(text[end:start].strip() == "" and end <= start for end, start in zip(ends, starts, strict=True))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in found)


@given(any_text, st.integers(1, 20))
def test_a_cut_keeps_everything_within_the_bound(text: str, tokens: int) -> None:
    parts = [text[start:end] for start, end in cut(text, tokens)]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(0 < size(part) <= tokens for part in parts)


@given(st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=50), st.integers(1, 20))
def test_a_cut_goes_between_words_that_fit(words: list[str], tokens: int) -> None:
    text = " ".join(words)
    assert " ".join(text[start:end] for start, end in cut(text, tokens)) == text


def test_size_counts_long_words_and_cjk_characters_piece_by_piece() -> None:
    assert size("the cat sat") == 3
    assert size("internationalisation") == 4
    assert size("今天很好。") == 5
    assert size("") == 0


def test_a_lead_is_whole_sentences_that_fit() -> None:
    assert lead("One two three. Four five six. Seven.", 8)[0] == "One two three. Four five six."
    assert lead("One two three four five.", 3)[0] == "One two three"
    assert lead("One.", 100)[0] == "One."


def test_the_beginning_of_a_text_ends_between_words() -> None:
    assert first("alpha beta gamma", 2) == "alpha beta"
    assert first("", 5) == ""


def test_a_danda_ends_a_sentence_without_white_space_behind_it() -> None:
    assert sentences("यह एक है।यह दो है।") == ["यह एक है।", "यह दो है।"]


@pytest.mark.parametrize("word", ["किताबें" * 30, "หนังสือที่นี่" * 30, "ភាសាខ្មែរ" * 30])
def test_a_long_word_is_not_cut_between_a_letter_and_its_marks(word: str) -> None:
    for tokens in range(2, 40):
        pieces = [word[start:end] for start, end in cut(word, tokens)]
        assert "".join(pieces) == word and all(size(piece) <= tokens for piece in pieces)
        assert all(not unicodedata.category(piece[0]).startswith("M") for piece in pieces)
