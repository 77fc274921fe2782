"""A lesson outlives a small edit of its document, and never reaches another text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Opener

import evokey
from evokey.ledger.signature import THERE, Signature

PAGE = evokey.Document(
    "guide",
    "The boiler in the cellar heats the house. It is filled twice a year, in March and in October, by the company "
    "whose number stands on its door. If the red lamp is on, press the button below it once and wait for five minutes. "
    "If it comes on again, call them. Nobody but them opens the lid.",
    "Heating",
)
OTHER = "Apples and pears are stored on the upper shelf, where it is dry; potatoes in the box beside the stairs."
QUESTION = "who do I ring when my radiator is cold"


@pytest.fixture
def taught(opened: Opener) -> evokey.Memory:
    memory = opened("kb", encoder="bm25")
    memory.add(
        [PAGE, evokey.Document("store", OTHER), evokey.Document("keys", "The key of the shed hangs in the hall.")]
    )
    memory.feedback(QUESTION, relevant=["guide"], actor="evelyn")
    memory.evolve()
    return memory


def found(memory: evokey.Memory) -> list[str]:
    return [hit.id for hit in memory.search("ring radiator cold")]


EDITED = {
    "a comma": PAGE.text.replace("twice a year, in", "twice a year in"),
    "a word": PAGE.text.replace("five", "ten"),
    "a sentence more": PAGE.text + " The lid is yellow.",
    "a sentence less": PAGE.text.removesuffix(" Nobody but them opens the lid."),
}


@pytest.mark.parametrize("text", EDITED.values(), ids=EDITED.keys())
def test_after_a_small_edit_a_page_is_found_by_what_it_was_taught(taught: evokey.Memory, text: str) -> None:
    assert found(taught) == ["guide"]
    taught.add([replace(PAGE, text=text)])
    assert found(taught) == ["guide"]
    stats, told = taught.stats(), taught.explain("guide")
    assert (stats.carried_over, stats.set_aside) == (told.carried_over, told.set_aside) == (1, 0)
    taught.evolve()
    assert found(taught) == ["guide"]


def test_nothing_is_carried_over_to_another_text(taught: evokey.Memory) -> None:
    taught.add([replace(PAGE, text=OTHER)])
    stats, told = taught.stats(), taught.explain("guide")
    assert (stats.carried_over, stats.set_aside) == (told.carried_over, told.set_aside) == (0, 1)
    assert found(taught) == []
    taught.add([PAGE])
    assert found(taught) == ["guide"]
    assert (taught.stats().carried_over, taught.stats().set_aside) == (0, 0)


def test_every_version_is_compared_with_the_text_that_was_taught_not_with_the_one_before(
    taught: evokey.Memory,
) -> None:
    words, new = PAGE.text.split(), OTHER.split()
    shares = []
    for count in range(4, len(words) + 1, 4):
        text = " ".join([*new[:count], *words[count:]])
        taught.add([replace(PAGE, text=text)])
        shares.append(taught.stats().carried_over)
    assert (shares[0], shares[-1]) == (1, 0)
    assert sorted(shares, reverse=True) == shares


def test_a_deleted_page_that_comes_back_edited_knows_its_lessons(taught: evokey.Memory) -> None:
    taught.delete(["guide"])
    assert (taught.stats().carried_over, taught.stats().set_aside) == (0, 1)
    taught.add([replace(PAGE, text=EDITED["a word"])])
    assert found(taught) == ["guide"]


def test_a_caller_with_a_filter_reads_only_the_counts_of_his_documents(taught: evokey.Memory) -> None:
    taught.add([replace(PAGE, text=EDITED["a word"], metadata={"reader": "hr"})])
    assert taught.stats({"reader": "hr"}).carried_over == 1
    assert taught.stats({"reader": {"ne": "hr"}}).carried_over == 0


@pytest.mark.parametrize("how", [{"actor": "evelyn"}, {"document": "guide"}, {"query": QUESTION}], ids=str)
def test_forgetting_erases_the_signature_of_the_text_that_is_gone(
    taught: evokey.Memory, tmp_path: Path, how: dict[str, str]
) -> None:
    taught.add([replace(PAGE, text=EDITED["a word"])])
    signature, hash = Signature.of(f"{PAGE.title}\n{PAGE.text}").to_bytes(), PAGE.hash.encode()

    def holds(what: bytes) -> bool:
        return any(what in path.read_bytes() for path in (tmp_path / "kb").rglob("ledger*") if path.is_file())

    assert holds(signature) and holds(hash)
    assert taught.forget(**how).erased
    assert not holds(signature) and not holds(hash)
    assert found(taught) == []


def test_a_lesson_on_a_passage_goes_with_that_passage(opened: Opener) -> None:
    """Whatever becomes of the rest of a long page."""
    memory = opened("kb", encoder="bm25", keys="chunks")
    told = [" ".join(f"Thing{number}x{at} is good." for at in range(40)) for number in range(8)]
    other = [f"## Part {number}\n\n{text}" for number, text in enumerate(told)]
    page = evokey.Document("house", "\n\n".join(["# House", *other[:4], f"## Heating\n\n{PAGE.text}", *other[4:]]))
    memory.add([page, evokey.Document("store", OTHER)])
    memory.feedback(QUESTION, relevant=["house#heating"])
    memory.feedback("what is this page about", relevant=["house"])
    assert [len(one.verdicts[0].passages) for one in memory.lessons()] == [1, 0]
    rewritten = [text.replace("Thing", "Matter") for text in other]
    memory.add([replace(page, text="\n\n".join([*rewritten, f"## Warmth\n\n{EDITED['a word']}"]))])
    assert (memory.stats().carried_over, memory.stats().set_aside) == (1, 1)
    memory.add([replace(page, text="\n\n".join(["# House", *other]))])
    assert (memory.stats().carried_over, memory.stats().set_aside) == (1, 1)
    assert [hit.id for hit in memory.search("cold radiator")] == []


def test_a_signature_tells_how_much_of_a_text_is_in_another() -> None:
    words = [f"word{number}" for number in range(2_000)]
    whole = Signature.of(" ".join(words))
    for part in (0.0, 0.25, 0.5, 0.9, 1.0):
        kept = words[: round(part * len(words))] + [f"other{number}" for number in range(500)]
        assert whole.share_in(" ".join(kept)) == pytest.approx(part, abs=0.2)
    assert Signature.from_bytes(whole.to_bytes()).share_in(" ".join(words)) == 1.0
    assert len(whole.to_bytes()) == 36


def test_a_short_text_is_found_in_a_long_one() -> None:
    long = " ".join(f"word{number}" for number in range(5_000))
    short = Signature.of(" ".join(f"word{number}" for number in range(3_000, 3_040)))
    assert short.share_in(long) > 0.9
    assert short.share_in(long.replace("word30", "other30")) < THERE


def test_empty_texts_are_alike_and_nothing_else_is_like_them() -> None:
    empty, text = Signature.of(" "), Signature.of("some words")
    assert empty.share_in(" ") == 1.0 and empty.share_in("some words") == text.share_in(" ") == 0.0 < THERE
