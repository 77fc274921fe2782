from __future__ import annotations

from test_key_builders import Counted

from evokey.keys.keywords import Keywords
from evokey.keys.sentences import size
from evokey.types import Document, KeyText

STATINS = Document(
    "1",
    "statin breast cancer survival finland recent studies suggest statins prevent breast cancer recurrence num num "
    "cases breast cancer death statin users num breast cancer patients cox regression num num",
)
OTHERS = [
    Document(f"o{number}", f"num studies cases patients suggest recent users number{number}") for number in range(40)
]
CORPUS = Counted([STATINS, *OTHERS])


def phrases(text: str, title: str = "", count: int = 20) -> list[str]:
    document = Document("1", text, title)
    (found,) = Keywords(count).rows(document, Counted([document, *OTHERS]))
    return found.text.split(". ", 1)[-1].split(", ")


def test_text_without_stop_words_gives_what_recurs() -> None:
    (found,) = Keywords().rows(STATINS, CORPUS)
    lead, keywords = found.text.split(". ")
    assert STATINS.text.startswith(lead + " ")
    assert 20 < size(lead) <= 25
    assert keywords.split(", ")[:2] == ["breast cancer", "statin"]
    assert "num" not in keywords.split(", ")  # every document has it


def test_the_title_is_always_there_and_lifts_its_words() -> None:
    text = "the reactor uses graphite, and water, and helium, and sodium."
    assert phrases(text, "On sodium")[0] == "sodium"
    assert phrases(text, "On helium")[0] == "helium"
    (found,) = Keywords(1).rows(Document("1", text, "On sodium."), CORPUS)
    assert found == KeyText("On sodium. sodium")


def test_phrases_hold_no_stop_word_and_no_mark() -> None:
    found = phrases("Support vector machines, a kind of linear model, were tested on handwritten digits.", "Test")
    assert {"Support vector machines", "linear model", "handwritten digits"} & set(found)
    assert not any(set(phrase.lower().split()) & {"a", "of", "were", "on"} for phrase in found)
    assert not any("machines a" in phrase or "model were" in phrase for phrase in found)


def test_a_phrase_says_something_new() -> None:
    found = phrases(
        "The tidal lock. A tidal lock of tidal locks. Tidal, locked; lock. The moon has a tidal lock.", "Sky"
    )
    assert found == ["tidal lock", "moon"]


def test_numbers_alone_are_out_but_names_keep_theirs() -> None:
    found = phrases(
        "COVID-19 killed 300 people in 2020, the 16th of May. COVID-19 and type 2 diabetes; type 2 diabetes."
    )
    assert "COVID-19" in found
    assert "type 2 diabetes" in found
    assert not {"19", "300", "2020", "16th", "2"} & set(found)
    assert not any(phrase.startswith("300") or phrase.endswith("2020") for phrase in found)


def test_hyphens_and_possessives_stay_in_their_words() -> None:
    found = phrases("Parkinson's disease is a long-term illness. Parkinson's disease is a long-term burden.", "Illness")
    assert "Parkinson's disease" in found
    assert any("long-term" in phrase for phrase in found)


def test_the_count_bounds_the_phrases() -> None:
    text = ". ".join(f"the alpha{number}" for number in range(50))
    assert len(phrases(text, "Title", count=5)) == 5


def test_rare_words_go_before_common_ones() -> None:
    words = "studies, zeppelin, patients, airship"
    assert phrases(words, "T")[:2] == ["zeppelin", "airship"]


def test_words_that_most_documents_hold_part_phrases_in_any_language() -> None:
    others = [Document(f"d{number}", f"der hund und das haus nummer{number}") for number in range(30)]
    document = Document("1", "das rote fahrrad und der blaue wagen", "Verkehr")
    (found,) = Keywords().rows(document, Counted([document, *others]))
    assert found.text == "Verkehr. rote fahrrad, blaue wagen"


def test_a_dialogue_turn_is_known_by_what_it_is_about() -> None:
    found = phrases("Ann: Hey Bob! I just went to the pottery studio, and it was so great, wow.", "8 May 2023")
    assert found == ["Ann", "Bob", "pottery studio"]
