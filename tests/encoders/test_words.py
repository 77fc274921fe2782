"""Words in any script: one spelling, whole words, n-grams where there are no spaces, the right stemmer."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable

import pytest
from conftest import Dataset
from hypothesis import given
from hypothesis import strategies as st

from evokey.encoders.bm25 import BM25
from evokey.encoders.words import split
from evokey.errors import InvalidSettings

FORMS = ("NFC", "NFD", "NFKC", "NFKD")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("किताब ज़रूरत हाँ", ["किताब", "जरूरत", "हां"]),
        ("résumé naïve", ["résumé", "naïve"]),
        ("كِتَابٌ كتـــاب", ["كتاب", "كتاب"]),
        ('שָׁלוֹם צה״ל צה"ל בית־ספר', ["שלום", "צהל", "צהל", "בית", "ספר"]),
        ("п'ять п’ять пʼять", ["пять"] * 3),
        ("don’t don´t don't l’été", ["don", "t", "don", "t", "don", "t", "l", "été"]),
        ("می‌خواهم", ["می", "خواهم"]),
        ("Intel™ 2½ 10⁵ m² CO₂ ﬁnd", ["intel", "2", "1", "2", "10", "5", "m2", "co2", "find"]),
        ("İstanbul Straße STRASSE ΟΔΟΣ", ["istanbul", "strasse", "strasse", "οδοσ"]),
        ("ＡＢＣ１２３ ٣٤ ३४", ["abc123", "34", "34"]),
        ("soft\u00adhyphen snake_case", ["softhyphen", "snake", "case"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー", "東京", "京タ", "タワ", "ワー"]),
        ("ｶﾞｽ", ["ガ", "ス", "ガス"]),
        ("학교에", ["학", "교", "에", "학교", "교에"]),
        ("猫", ["猫"]),
        ("iPhoneの電池", ["iphone", "の", "電", "池", "の電", "電池"]),
        ("หนังสือ", ["ห", "นั", "ง", "สื", "อ", "หนั", "นัง", "งสื", "สือ"]),
        ("ភាសាខ្មែរ", ["ភា", "សា", "ខ្មែ", "រ", "ភាសា", "សាខ្មែ", "ខ្មែរ"]),
        ("🍕❤️ 👍🏽", ["🍕", "❤", "👍"]),
        ("… — ।。", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert split(text) == words


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("english", "книга книги книгу"),
        ("english", "running runs"),
        ("english", "οδός ΟΔΟΣ οδού"),
        ("english", "किताब किताबें"),
        ("english", "كتاب الكتاب كِتَاب"),
        ("english", "کتاب كتاب"),
        ("english", "ısparta ISPARTA"),
        ("turkish", "ISPARTA'da ısparta"),
        ("turkish", "İstanbul Istanbul istanbul"),
        ("german", "Straße STRASSE Strassen"),
        ("serbian", "књига knjige"),
        ("russian", "книга книги"),
    ],
)
def test_forms_of_a_word_have_one_stem(language: str, forms: str) -> None:
    first, *others = (set(bag) for bag in BM25(language=language).documents(forms.split()))
    assert all(first & other for other in others)


@pytest.mark.parametrize("word", ["сонячній", "їжі", "goingами", "گاهی", "ძაღლები", "שולחנות"])
def test_a_word_of_no_language_that_is_known_stays_whole(word: str) -> None:
    plain = BM25(language="none").documents([word])
    assert BM25().documents([word]) == plain


def test_an_unknown_analyser_is_an_error() -> None:
    with pytest.raises(InvalidSettings, match="the analysers 1 and 2, not 3"):
        BM25(analyser=3)


@pytest.mark.parametrize("name", ["scifact", "nfcorpus", "cranfield", "locomo10", "clinc150"])
def test_plain_english_texts_give_the_words_they_always_gave(name: str, dataset: Callable[[str], Dataset]) -> None:
    texts = [text for text in (one.text for one in dataset(name).documents) if text.isascii()][:2000]
    first, now = BM25(analyser=1), BM25()
    assert texts and first.documents(texts) == now.documents(texts)
    assert all(split(text) == re.findall(r"[^\W_]+", text.lower()) for text in texts)


TEXT = st.text(max_size=60) | st.text(
    st.sampled_from(
        "aIİıßſςΣée\u0301\u0307\u200c\u200d\u00ad'’\"1²½™´ क ि ् ा กำเ่ ខ្ម မ္ မ 東タｶﾞ가ᄀ ָ ْـ ش گ א״ п \ud800 _🍕\ufe0f"
    )
)


@given(TEXT)
def test_the_normal_forms_of_a_text_have_the_same_words_none_of_them_empty(text: str) -> None:
    words = split(text)
    assert all(word and not word.isspace() for word in words)
    for form in FORMS[:2]:
        assert split(unicodedata.normalize(form, text)) == words


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_text_is_lower_cased_and_split_and_nothing_else(text: str) -> None:
    assert split(text) == re.findall(r"[^\W_]+", text.lower())


@pytest.mark.parametrize(
    "piece",
    [
        "é",
        "e\u0301",
        "\u0301",
        "'п",
        "'",
        "๊",
        "เ",
        "東",
        "ក្",
        "်",
        "\u200c",
        "½",
        "²",
        "1²",
        "🍕",
        "a\u00ad",
        "\ud800",
        "ا\u200c",
    ],
)
def test_long_hostile_texts_take_linear_time(piece: str) -> None:
    """A generous budget: were it quadratic, a million characters would take minutes."""
    start = time.process_time()
    words = split(piece * (1_000_000 // len(piece)))
    assert sum(map(len, words)) <= 8_000_000 and time.process_time() - start < 60
