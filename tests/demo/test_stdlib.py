"""The demonstration corpus and its question set: what a reader of the results may take for granted."""

import json
from collections import Counter
from importlib.resources import files
from typing import Any

import pytest

from evokey.demo.stdlib import Entry, entries

TAUGHT_INTENTS = 84
UNTOUCHED_QUESTIONS = 44
IMPLEMENTATION_MODULES = {"builtins", "posix", "nt", "posixpath", "ntpath", "genericpath", "pyexpat"}


@pytest.fixture(scope="module")
def corpus() -> list[Entry]:
    return entries()


@pytest.fixture(scope="module")
def by_id(corpus: list[Entry]) -> dict[str, Entry]:
    return {entry.id: entry for entry in corpus}


@pytest.fixture(scope="module")
def intents() -> list[dict[str, Any]]:
    lines = files("evokey.demo").joinpath("questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def taught(intents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [intent for intent in intents if intent["group"] == "taught"]


@pytest.fixture(scope="module")
def untouched(intents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [intent for intent in intents if intent["group"] == "untouched"]


def relevant_ids(intents: list[dict[str, Any]]) -> set[str]:
    return {id for intent in intents for id in intent["relevant"]}


def test_the_corpus_is_large_enough_to_make_search_hard(corpus: list[Entry]) -> None:
    assert 4000 <= len(corpus) <= 12000


def test_ids_are_unique_and_sorted(corpus: list[Entry]) -> None:
    ids = [entry.id for entry in corpus]
    assert ids == sorted(set(ids))


def test_reading_twice_gives_the_same_corpus(corpus: list[Entry]) -> None:
    assert entries() == corpus


@pytest.mark.parametrize(
    ("id", "title", "kind", "words"),
    [
        ("len", "len(obj, /)", "function", "number of items"),
        ("open", "open(file, mode='r',", "function", "Open file"),
        ("str.join", "str.join(iterable, /)", "method", "Concatenate"),
        ("str.maketrans", "str.maketrans", "method", "translation table"),
        ("os.path", "os.path", "module", "pathname"),
        ("os.path.dirname", "os.path.dirname(p", "function", "directory component"),
        ("pathlib.PurePath.parent", "pathlib.PurePath.parent", "property", "parent"),
        ("collections.Counter.most_common", "collections.Counter.most_common(n=None)", "method", "most common"),
        ("itertools.groupby", "itertools.groupby(", "class", "consecutive keys"),
        ("functools.partial", "functools.partial(", "class", ""),
        ("typing.Optional", "typing.Optional", "form", "None"),
        ("asyncio.gather", "asyncio.gather(*coros_or_futures", "function", "future"),
        ("random.choice", "random.choice(seq)", "function", "random element"),
        ("json.JSONEncoder.default", "json.JSONEncoder.default(o)", "method", "serializable"),
        ("xml.etree.ElementTree.parse", "xml.etree.ElementTree.parse(source", "function", "element tree"),
        ("logging.handlers.RotatingFileHandler", "logging.handlers.RotatingFileHandler(filename", "class", ""),
        ("unittest.mock.patch", "unittest.mock.patch(target", "function", "decorator"),
    ],
)
def test_well_known_names_are_found_with_signature_and_docstring(
    by_id: dict[str, Entry], id: str, title: str, kind: str, words: str
) -> None:
    entry = by_id[id]
    assert entry.title.startswith(title)
    assert entry.kind == kind
    assert words in entry.text


def test_methods_of_a_private_base_are_found_under_the_public_class(by_id: dict[str, Entry]) -> None:
    assert {"socket.socket.recv", "contextlib.ExitStack.enter_context", "argparse.ArgumentParser.add_argument"} <= set(
        by_id
    )


def test_an_overridden_method_shows_the_docstring_of_the_override(by_id: dict[str, Entry]) -> None:
    assert by_id["random.seed"].text.startswith("Initialize internal state")
    assert "random.Random.seed" not in by_id


def test_no_part_of_an_id_is_private(corpus: list[Entry]) -> None:
    assert [entry.id for entry in corpus if any(part.startswith("_") for part in entry.id.split("."))] == []


def test_no_id_names_an_implementation_module(corpus: list[Entry]) -> None:
    assert [entry.id for entry in corpus if "." in entry.id and entry.id.split(".")[0] in IMPLEMENTATION_MODULES] == []


def test_asyncio_is_one_namespace(by_id: dict[str, Entry]) -> None:
    assert "asyncio.tasks.gather" not in by_id
    assert "asyncio.tasks" not in by_id


def test_every_entry_has_text_and_a_one_line_title_that_starts_with_its_id(corpus: list[Entry]) -> None:
    assert all(entry.text.strip() for entry in corpus)
    assert all(entry.title.startswith(entry.id) and "\n" not in entry.title for entry in corpus)


def test_nothing_in_an_entry_differs_from_run_to_run(corpus: list[Entry]) -> None:
    assert [entry.id for entry in corpus if " at 0x" in entry.title + entry.text] == []


def test_there_are_enough_taught_intents_and_untouched_questions(
    taught: list[dict[str, Any]], untouched: list[dict[str, Any]], intents: list[dict[str, Any]]
) -> None:
    assert len(taught) >= TAUGHT_INTENTS
    assert len(untouched) == UNTOUCHED_QUESTIONS
    assert len(taught) + len(untouched) == len(intents)


def test_a_taught_intent_has_four_wordings_and_an_untouched_one_has_one(
    taught: list[dict[str, Any]], untouched: list[dict[str, Any]]
) -> None:
    assert {len(intent["questions"]) for intent in taught} == {4}
    assert {len(intent["questions"]) for intent in untouched} == {1}


def test_intent_names_are_unique(intents: list[dict[str, Any]]) -> None:
    assert len({intent["intent"] for intent in intents}) == len(intents)


def test_no_question_is_asked_twice(intents: list[dict[str, Any]]) -> None:
    asked = Counter(" ".join(question.lower().split()) for intent in intents for question in intent["questions"])
    assert [question for question, times in asked.items() if times > 1] == []


def test_the_wordings_of_an_intent_share_less_than_half_of_their_words(taught: list[dict[str, Any]]) -> None:
    def overlap(one: str, other: str) -> float:
        left, right = set(one.lower().split()), set(other.lower().split())
        return len(left & right) / len(left | right)

    for intent in taught:
        wordings = intent["questions"]
        pairs = [(one, other) for i, one in enumerate(wordings) for other in wordings[i + 1 :]]
        assert max(overlap(*pair) for pair in pairs) < 0.5, intent["intent"]


def test_every_relevant_id_exists_in_the_corpus(intents: list[dict[str, Any]], by_id: dict[str, Entry]) -> None:
    assert relevant_ids(intents) - set(by_id) == set()


def test_every_intent_has_one_to_four_relevant_entries(intents: list[dict[str, Any]]) -> None:
    assert all(1 <= len(set(intent["relevant"])) == len(intent["relevant"]) <= 4 for intent in intents)


def test_untouched_questions_share_no_relevant_entry_with_taught_ones(
    taught: list[dict[str, Any]], untouched: list[dict[str, Any]]
) -> None:
    assert relevant_ids(taught) & relevant_ids(untouched) == set()


def test_questions_rarely_contain_the_name_of_their_answer(intents: list[dict[str, Any]]) -> None:
    questions = [(question, intent["relevant"]) for intent in intents for question in intent["questions"]]
    named = [question for question, relevant in questions if any(id in question for id in relevant if "." in id)]
    assert len(named) <= len(questions) * 0.01
