"""The command line alone is enough: every command, its JSON, its exit codes, and errors that say what to type next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import evokey
from evokey.cli import demo, screen
from evokey.cli.app import app

FAILED, WRONG_USE = 1, 2
RECORDS = [
    {"id": "cat", "text": "the cat sleeps on the sofa", "lang": "en", "year": 2019},
    {"id": "dog", "text": "the dog sleeps in the garden", "lang": "en", "year": 2020},
    {"id": "katze", "text": "the word Katze sleeps in a dictionary", "lang": "de", "year": 2020},
    {"id": "chat", "text": "the word chat sleeps in a dictionary", "lang": "fr", "year": 2020.5},
    {"id": "q3", "text": "quarterly revenue report", "lang": "en", "year": "2021", "draft": True},
]
QUESTION = "how much money did we earn"


def run(*arguments: object, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=env)


def value(result: Result) -> Any:
    """The one JSON value on standard output of a command that went well."""
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def added(count: int, documents: int) -> dict[str, Any]:
    nothing = {"repeated": 0, "unchanged": 0, "removed": 0, "gone": [], "skipped": [], "failed": []}
    return {"added": count, "documents": documents, **nothing}


def complaint(result: Result) -> str:
    """The error on standard error; nothing else was printed, and it was raised on purpose."""
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    return result.stderr.removeprefix("error: ").rstrip("\n")


def lines(path: Path, records: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


@pytest.fixture(autouse=True)
def nobody_is_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output as into a wide pipe, also where CI asks for colour."""
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.delenv("EVOKEY_AT", raising=False)
    monkeypatch.setattr(screen, "console", screen.Screen(force_terminal=False))
    monkeypatch.setattr(screen, "errors", screen.Screen(force_terminal=False, stderr=True))


@pytest.fixture
def at(tmp_path: Path) -> Path:
    """A memory with five documents."""
    folder = tmp_path / "kb"
    run("init", "--at", folder, "--encoder", "bm25")
    assert value(run("add", lines(tmp_path / "kb.jsonl", RECORDS), "--at", folder, "--json"))["documents"] == 5
    return folder


def found(at: Path, query: str, *options: object) -> list[str]:
    return [hit["id"] for hit in value(run("search", query, *options, "--at", at, "--json"))]


# ---- every command


def test_the_version_is_printed() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"{evokey.__version__}\n")


def test_without_a_command_the_help_is_shown() -> None:
    shown = run().stdout
    assert all(command in shown for command in ("init", "add", "search", "feedback", "evolve", "forget", "stats"))


@pytest.mark.parametrize("command", ["init", "add", "search", "feedback", "evolve", "forget", "stats", "demo"])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_explains_itself(command: str, flag: str) -> None:
    result = run(command, flag)
    assert (result.exit_code, "json" in result.stdout) == (0, True)  # CI may put colour between the dashes


def test_init_makes_a_memory_and_says_what_to_type_next(tmp_path: Path) -> None:
    result = run("init", "--at", tmp_path / "kb")
    assert result.exit_code == 0
    assert "bm25 + wordllama, policy guarded" in result.stdout
    assert "evokey add FILES --at" in result.stdout
    assert (tmp_path / "kb" / "evokey.toml").exists()


def test_init_takes_its_settings_from_options_and_may_be_repeated(tmp_path: Path) -> None:
    options = ("--at", tmp_path / "kb", "--encoder", "wordllama", "--encoder", "bm25", "--policy", "guarded", "--json")
    first = value(run("init", *options))
    assert (first["at"], first["retrievers"], first["documents"]) == (str(tmp_path / "kb"), ["wordllama", "bm25"], 0)
    assert value(run("init", *options))["retrievers"] == ["wordllama", "bm25"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--encoder", "bert"), "no encoder called 'bert'; choose one of: "),
        (("--policy", "greedy"), "no policy called 'greedy'; choose one of: guarded"),
        (("--keys", "halves"), "no keys called 'halves'; choose one of: abstract, auto, chunks, full"),
        (("--encoder", "bm25", "--encoder", "bm25"), "named once, not bm25, bm25"),
    ],
)
def test_init_with_settings_that_make_no_memory_is_wrong_use(
    tmp_path: Path, options: tuple[str, ...], named: str
) -> None:
    result = run("init", "--at", tmp_path / "kb", *options)
    assert result.exit_code == WRONG_USE
    assert named in complaint(result)
    assert not (tmp_path / "kb").exists()


def test_init_over_a_memory_of_other_settings_is_wrong_use(at: Path) -> None:
    result = run("init", "--at", at, "--encoder", "wordllama")
    assert result.exit_code == WRONG_USE
    assert "was made with bm25/auto" in complaint(result)


def test_init_in_a_folder_of_something_else_fails_and_touches_nothing(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    result = run("init", "--at", tmp_path)
    assert result.exit_code == FAILED
    assert "holds thesis.tex" in complaint(result)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name", ["notes[old]", "a[/b]"])
def test_a_path_with_brackets_is_shown_as_it_is(tmp_path: Path, name: str) -> None:
    result = run("init", "--at", tmp_path / name, "--encoder", "bm25")
    assert (result.exit_code, name in result.stdout) == (0, True)


def test_add_takes_every_kind_of_file_and_makes_the_memory(tmp_path: Path) -> None:
    lines(tmp_path / "in" / "beir" / "corpus.jsonl", [{"_id": "b1", "text": "from a BEIR corpus"}])
    lines(tmp_path / "in" / "beir" / "queries.jsonl", [{"_id": "query", "text": "no document"}])
    lines(tmp_path / "in" / "many.jsonl", [{"id": "j1", "text": "first line"}, {"id": "j2", "text": "second line"}])
    for name in ("one.txt", "two.md", "folder/three.md", "folder/sub/four.txt"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("# Heading\nwords")
    paths = [tmp_path / "in" / name for name in ("beir", "many.jsonl", "one.txt", "two.md", "folder")]
    assert value(run("add", *paths, "--at", tmp_path / "kb", "--json")) == added(7, 7)
    ids = {"b1", "j1", "j2", "one.txt", "two.md", "folder/three.md", "folder/sub/four.txt"}
    with evokey.open(tmp_path / "kb") as memory:
        assert {id: memory.get(id).id for id in ids} == {id: id for id in ids}
        assert (memory.get("two.md").title, memory.get("one.txt").title) == ("Heading", "one")
        assert memory.stats().retrievers == ["bm25", "wordllama"]


def test_adding_again_replaces_by_id(tmp_path: Path, at: Path) -> None:
    changed = lines(tmp_path / "new.jsonl", [{"id": "cat", "text": "the ocelot wakes"}])
    result = run("add", changed, "--at", at)
    assert (result.exit_code, result.stdout) == (0, "added 1 document; the memory holds 5\n")
    assert (found(at, "ocelot"), found(at, "sofa")) == (["cat"], [])


def test_more_documents_than_one_batch_are_all_added(tmp_path: Path, at: Path) -> None:
    many = lines(tmp_path / "many.jsonl", [{"id": f"n{number}", "text": f"entry {number}"} for number in range(600)])
    assert value(run("add", many, "--at", at, "--json")) == added(600, 605)


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("bad.jsonl", '{"id": "new", "text": "w"}\nbroken', "bad.jsonl, line 2 is not valid JSON"),
        ("bad.jsonl", '{"id": "new", "text": "w"}\n{"id": "x"}', "bad.jsonl, line 2 needs the fields id (or _id) and"),
        ("bad.jsonl", '{"id": "new", "text": "w"}\n{"id": "x", "text": 5}', "line 2: text and title must be strings"),
        ("bad.xyz", "w", "bad.xyz is of unknown type"),
        ("bad.pdf", "w", "bad.pdf cannot be read as pdf: PdfiumError: "),
        (None, "", "absent.txt does not exist"),
        ("bad.jsonl", '{"id": "x", "text": "w", "metadata": 5}', "metadata"),
    ],
)
def test_adding_something_unreadable_is_wrong_use_and_adds_nothing(
    tmp_path: Path, at: Path, name: str | None, content: str, named: str
) -> None:
    if name is not None:
        (tmp_path / name).write_text(content)
    result = run("add", tmp_path / (name or "absent.txt"), "--at", at)
    assert result.exit_code == WRONG_USE
    assert named in complaint(result)
    assert value(run("stats", "--at", at, "--json"))["documents"] == 5


def test_a_wrong_document_far_down_adds_nothing_either(tmp_path: Path, at: Path) -> None:
    records = [{"id": f"n{number}", "text": "w"} for number in range(300)] + [{"id": "bad", "text": 5}]
    assert run("add", lines(tmp_path / "many.jsonl", records), "--at", at).exit_code == WRONG_USE
    assert value(run("stats", "--at", at, "--json"))["documents"] == 5


def test_files_of_the_same_name_are_two_documents_or_an_error(tmp_path: Path, at: Path) -> None:
    for folder in ("north", "south"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "readme.md").write_text(folder)
    result = run("add", tmp_path / "north" / "readme.md", tmp_path / "south" / "readme.md", "--at", at, "--json")
    assert result.exit_code == WRONG_USE or json.loads(result.stdout)["documents"] == 7


def test_search_shows_a_table_for_people(at: Path) -> None:
    result = run("search", "cat", "--at", at)
    assert result.exit_code == 0
    assert [word in result.stdout for word in ("score", "cat", "the cat sleeps on the sofa")] == [True] * 3


def test_search_gives_machines_the_whole_document(at: Path) -> None:
    [hit] = value(run("search", "sofa", "--at", at, "--json"))
    assert hit.pop("score") > 0
    assert hit.pop("passage")["text"] == hit["text"]
    metadata = {"lang": "en", "year": 2019}
    assert hit == {"id": "cat", "title": "", "text": "the cat sleeps on the sofa", "metadata": metadata}


def test_search_names_the_passage_that_answers_and_marks_the_words_of_the_query(tmp_path: Path) -> None:
    parts = [f"## {name}\n\n{'Nobody asks for these words. ' * 60}\nThe {name} sings.\n" for name in ("wren", "owl")]
    (tmp_path / "birds.md").write_text("# Birds\n\n" + "\n".join(parts), "utf-8")
    run("add", tmp_path / "birds.md", "--at", tmp_path / "kb")
    (hit,) = value(run("search", "singing owl", "--at", tmp_path / "kb", "--json"))
    assert hit["passage"]["where"].startswith("owl") and hit["passage"]["name"].startswith(f"{hit['id']}#owl")
    assert hit["text"][hit["passage"]["start"] : hit["passage"]["end"]] == hit["passage"]["text"]
    shown = screen.mark("The owl sings at night.", frozenset(screen.stems("singing owls")))
    assert [shown.plain[span.start : span.end] for span in shown.spans] == ["owl", "sings"]
    assert value(run("search", 'birds -"the owl sings"', "--at", tmp_path / "kb", "--json")) == []
    assert len(value(run("search", "owl wren sings", "--at", tmp_path / "kb", "--group", "passage", "--json"))) > 1


def test_search_that_finds_nothing_is_no_failure(at: Path) -> None:
    result = run("search", "zeppelin", "--at", at)
    assert (result.exit_code, result.stdout) == (0, "nothing found\n")
    assert found(at, "zeppelin") == []


def test_text_that_looks_like_markup_is_shown_as_it_is(tmp_path: Path, at: Path) -> None:
    run("add", lines(tmp_path / "m.jsonl", [{"id": "[/red]", "text": "a [bold]zeppelin[/bold]"}]), "--at", at)
    shown = run("search", "zeppelin", "--at", at).stdout
    assert ("[/red]" in shown, "a [bold]zeppelin[/bold]" in shown) == (True, True)


def test_k_limits_the_hits(at: Path) -> None:
    assert len(found(at, "sleeps")) == 4
    assert found(at, "sleeps", "-k", "2") == found(at, "sleeps")[:2]


@pytest.mark.parametrize(
    ("conditions", "ids"),
    [
        (["lang=de"], {"katze"}),
        (["lang=de", "lang=fr"], {"katze", "chat"}),
        (["year=2020"], {"dog", "katze"}),
        (["year=2020.5"], {"chat"}),
        (["year=2019", "year=2020"], {"cat", "dog", "katze"}),
        (["lang=en", "year=2020"], {"dog"}),
        (["lang="], set()),
        (["nofield=1"], set()),
    ],
)
def test_where_filters_by_strings_numbers_and_one_of(at: Path, conditions: list[str], ids: set[str]) -> None:
    options = [part for condition in conditions for part in ("--where", condition)]
    assert set(found(at, "sleeps", *options)) == ids


@pytest.mark.parametrize("condition", ["year=2021", "draft=true", "lang=en"])
def test_where_finds_numbers_kept_as_text_and_truth(at: Path, condition: str) -> None:
    assert found(at, "revenue", "--where", condition) == ["q3"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--where", "lang"], "--where lang is not of the form field=value"),
        (["--where", "=en"], "--where =en is not of the form field=value"),
        (["-k", "0"], "k must be a whole number from 1 on, not 0"),
        (["--epoch", "9"], "there is no epoch 9; they run from 0 (untaught) to 0"),
        (["--epoch", "-1"], "there is no epoch -1"),
        (["--where", f"year={2**63}"], "year"),
        (["--where", "lang=\udcff"], "lang"),
    ],
)
def test_a_search_that_cannot_be_meant_is_wrong_use(at: Path, options: list[str], named: str) -> None:
    result = run("search", "cat", *options, "--at", at)
    assert result.exit_code == WRONG_USE
    assert named in complaint(result)


def test_a_huge_number_in_metadata_is_kept_or_refused_but_never_a_crash(tmp_path: Path, at: Path) -> None:
    result = run("add", lines(tmp_path / "huge.jsonl", [{"id": "x", "text": "w", "isbn": 2**63}]), "--at", at)
    assert result.exit_code in (0, WRONG_USE)


@pytest.mark.parametrize("query", ["", "   "])
def test_an_empty_question_is_wrong_use(at: Path, query: str) -> None:
    result = run("search", query, "--at", at)
    assert (result.exit_code, complaint(result)) == (WRONG_USE, "the query is empty; give some text")


@pytest.mark.parametrize(
    "arguments", [["search"], ["add"], ["search", "cat", "-k", "many"], ["fly"], ["stats", "--x"], ["review", "9" * 30]]
)
def test_a_command_line_that_cannot_be_parsed_is_wrong_use(arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (WRONG_USE, "")


# ---- teaching


def test_a_taught_question_is_answered_after_evolve(at: Path) -> None:
    assert found(at, QUESTION) == []
    taught = run("feedback", QUESTION, "-r", "q3=2", "--irrelevant", "cat", "--unit", "sales figures", "--at", at)
    assert (taught.exit_code, taught.stdout) == (0, "recorded 1 lesson; learn from them with: evokey evolve\n")
    assert found(at, QUESTION) == []
    evolved = run("evolve", "--at", at)
    assert evolved.exit_code == 0
    assert evolved.stdout.startswith("published epoch 1: taught queries 0.000 → 1.000")
    assert found(at, QUESTION) == ["q3"]
    assert found(at, QUESTION, "--epoch", "0") == []


def test_a_dry_run_reports_and_publishes_nothing(at: Path) -> None:
    run("feedback", QUESTION, "-r", "q3", "--at", at)
    report = value(run("evolve", "--dry-run", "--at", at, "--json"))
    assert (report["published"], report["epoch"]) == (False, 0)
    assert report["reason"].startswith("dry run: ")
    assert report["taught"] == {"before": 0.0, "after": 1.0, "queries": 1}
    assert found(at, QUESTION) == []
    assert value(run("evolve", "--at", at, "--json"))["published"] is True


def test_evolving_with_nothing_new_publishes_nothing_and_is_no_failure(at: Path) -> None:
    assert (
        run("evolve", "--at", at).stdout == "not published: no lesson says which document was right: nothing to learn\n"
    )
    run("feedback", QUESTION, "-r", "q3", "--at", at)
    run("evolve", "--at", at)
    again = run("evolve", "--at", at)
    assert (again.exit_code, again.stdout.splitlines()[0]) == (0, "not published: nothing new since epoch 1")


@pytest.mark.parametrize(
    ("said", "grades"),
    [
        (["-r", "cat"], {"cat": 1.0}),
        (["-r", "cat=2"], {"cat": 2.0}),
        (["-r", "cat=0.5", "--relevant", "dog", "-w", "q3"], {"cat": 0.5, "dog": 1.0, "q3": -1.0}),
        (["-w", "dog", "-w", "cat"], {"dog": -1.0, "cat": -1.0}),
        (["-r", "cat=0"], {"cat": 0.0}),
        (["-r", "a=b"], {"a=b": 1.0}),
        (["-r", "a=b=3"], {"a=b": 3.0}),
    ],
)
def test_feedback_grades_documents_as_it_is_told(
    tmp_path: Path, at: Path, said: list[str], grades: dict[str, float]
) -> None:
    run("add", lines(tmp_path / "equals.jsonl", [{"id": "a=b", "text": "an id with an equals sign"}]), "--at", at)
    assert value(run("feedback", QUESTION, *said, "--actor", "ana", "--at", at, "--json")) == {"lessons": [1]}
    with evokey.open(at) as memory:
        lessons = [lesson for id in grades for lesson in memory.explain(id).lessons]
    assert {verdict.document: verdict.grade for lesson in lessons for verdict in lesson.verdicts} == grades
    assert {(lesson.query, lesson.actor) for lesson in lessons} == {(QUESTION, "ana")}


def test_a_file_teaches_many_lessons(tmp_path: Path, at: Path) -> None:
    lessons = [
        {"query": QUESTION, "relevant": ["q3"], "units": ["sales figures"]},
        {"query": "feline", "relevant": {"cat": 2, "katze": 1}, "irrelevant": ["dog"], "actor": "bo"},
    ]
    taught = run("feedback", "--file", lines(tmp_path / "l.jsonl", lessons), "--actor", "ana", "--at", at, "--json")
    assert value(taught) == {"lessons": [1, 2]}
    with evokey.open(at) as memory:
        [first], [second] = memory.explain("q3").lessons, memory.explain("cat").lessons
    assert (first.query, first.units, first.actor) == (QUESTION, ("sales figures",), "ana")
    assert (second.query, second.verdicts[0].grade, second.actor) == ("feline", 2.0, "bo")
    assert value(run("evolve", "--at", at, "--json"))["lessons"] == 2
    assert (found(at, QUESTION), found(at, "feline")[0]) == (["q3"], "cat")


@pytest.mark.parametrize(
    ("said", "code", "named"),
    [
        ([QUESTION, "-r", "nope"], FAILED, "no document has the id 'nope'; add it first, or check the spelling"),
        ([QUESTION, "-r", "cat", "-w", "nope"], FAILED, "no document has the id 'nope'"),
        ([QUESTION], WRONG_USE, "feedback needs a verdict"),
        ([], WRONG_USE, "give a question with --relevant or --irrelevant, or --file with many"),
        (
            [QUESTION, "-r", "cat", "--file", "x.jsonl"],
            WRONG_USE,
            "give a question with --relevant or --irrelevant, or --file",
        ),
        (["", "-r", "cat"], WRONG_USE, "the query is empty"),
        ([QUESTION, "-r", "cat", "-w", "cat"], WRONG_USE, "'cat' is given as right and as wrong"),
        ([QUESTION, "-r", "cat=-1"], WRONG_USE, "the grade of 'cat' is -1.0; a wrong document goes into irrelevant"),
        ([QUESTION, "-r", "cat=nan"], WRONG_USE, "the grade of 'cat' must be a finite number, not nan"),
        ([QUESTION, "-r", "cat", "--actor", ""], WRONG_USE, "an actor is a non-empty name, not ''"),
        ([QUESTION, "-r", "\udcff"], WRONG_USE, "strings of valid Unicode"),
        (["--file", "/absent.jsonl"], WRONG_USE, "/absent.jsonl does not exist"),
    ],
)
def test_feedback_that_cannot_be_taken_says_why_and_teaches_nothing(
    at: Path, said: list[str], code: int, named: str
) -> None:
    result = run("feedback", *said, "--at", at)
    assert result.exit_code == code
    assert named in complaint(result)
    assert value(run("stats", "--at", at, "--json"))["lessons"] == 0


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"broken", "is not valid JSON"),
        (b'["feline", "cat"]', "is not a JSON object"),
        (b'{"relevant": ["cat"]}', "a lesson has query"),
        (b'{"query": "feline", "relevent": ["cat"]}', "a lesson has query"),
        (b'{"query": "feline", "relevant": null}', "relevant"),
        (b'{"query": "feline", "relevant": 5}', "relevant"),
        (b'{"query": "feline", "relevant": ["cat"], "units": 5}', "units"),
        (b'{"query": "feline", "relevant": ["caf\xe9"]}', "is not UTF-8"),
        (b'{"query": "", "relevant": ["cat"]}', "the query is empty"),
        (b'{"query": "feline", "relevant": []}', "needs a verdict"),
    ],
)
def test_a_bad_line_in_a_file_of_lessons_is_named_and_teaches_nothing(
    tmp_path: Path, at: Path, line: bytes, named: str
) -> None:
    file = tmp_path / "l.jsonl"
    file.write_bytes(line + b"\n")
    result = run("feedback", "--file", file, "--at", at)
    assert result.exit_code == WRONG_USE
    assert all(part in complaint(result) for part in (named, "l.jsonl, line 1"))
    assert value(run("stats", "--at", at, "--json"))["lessons"] == 0


@pytest.mark.parametrize("bad", [{"query": "canine", "relevant": ["nope"]}, {"query": "", "relevant": ["dog"]}])
def test_a_file_of_lessons_is_taken_whole_or_not_at_all(tmp_path: Path, at: Path, bad: dict[str, Any]) -> None:
    file = lines(tmp_path / "l.jsonl", [{"query": "feline", "relevant": ["cat"]}, bad])
    assert run("feedback", "--file", file, "--at", at).exit_code != 0
    assert value(run("stats", "--at", at, "--json"))["lessons"] == 0


@pytest.mark.parametrize(
    "content",
    [
        '{"query": "feline", "relevant": ["cat"]}\n\n',
        '\ufeff{"query": "feline", "relevant": ["cat"]}\n',
        '{"query": "fe\u2028line", "relevant": ["cat"]}\n',
    ],
    ids=["blank line", "byte order mark", "line separator in a string"],
)
def test_a_file_of_lessons_is_read_as_documents_are(tmp_path: Path, at: Path, content: str) -> None:
    (tmp_path / "l.jsonl").write_text(content, "utf-8")
    assert value(run("feedback", "--file", tmp_path / "l.jsonl", "--at", at, "--json")) == {"lessons": [1]}


def test_verdicts_beside_a_file_are_wrong_use(tmp_path: Path, at: Path) -> None:
    file = lines(tmp_path / "l.jsonl", [{"query": "feline", "relevant": ["cat"]}])
    assert run("feedback", "--file", file, "-r", "dog", "--at", at).exit_code == WRONG_USE


@pytest.mark.parametrize(
    ("criterion", "count", "kept"),
    [
        (["--query", QUESTION], 1, 1),
        (["--actor", "ana"], 1, 1),
        (["--document", "q3"], 1, 1),
        (["--query", QUESTION, "--actor", "bo"], 0, 2),
        (["--query", "never asked"], 0, 2),
    ],
)
def test_forget_erases_what_matches_every_criterion_at_once(
    at: Path, criterion: list[str], count: int, kept: int
) -> None:
    run("feedback", QUESTION, "-r", "q3", "--actor", "ana", "--at", at)
    run("feedback", "feline", "-r", "cat", "--actor", "bo", "--at", at)
    run("evolve", "--at", at)
    assert found(at, QUESTION) == ["q3"]
    done = {"lessons": count, "erased": True, "pending": None, "revisions": 0, "epoch": 1 + (count > 0)}
    assert value(run("forget", *criterion, "--at", at, "--json")) == done
    assert found(at, QUESTION) == (["q3"] if kept == 2 else [])
    assert found(at, "feline") == ["cat"]
    assert value(run("stats", "--at", at, "--json"))["lessons"] == kept


def test_forget_tells_people_how_much_is_gone_and_needs_to_know_what(at: Path) -> None:
    run("feedback", QUESTION, "-r", "q3", "--at", at)
    assert run("forget", "--query", QUESTION, "--at", at).stdout == "forgot 1 lesson; searches now use epoch 0\n"
    nothing = run("forget", "--at", at)
    assert nothing.exit_code == WRONG_USE
    assert complaint(nothing).startswith("name what to forget")


def test_lessons_are_listed_filtered_held_released_and_exported(tmp_path: Path, at: Path) -> None:
    run("feedback", QUESTION, "-r", "q3", "--actor", "ana", "--at", at)
    run("feedback", "feline", "-r", "cat", "--actor", "bo", "--at", at)
    run("evolve", "--at", at)
    assert [one["number"] for one in value(run("lessons", "--at", at, "--json"))] == [1, 2]
    assert value(run("lessons", "--actor", "bo", "--hold", "--at", at, "--json")) == {"held": 1, "on_hold": 1}
    assert [one["query"] for one in value(run("lessons", "--held", "--at", at, "--json"))] == ["feline"]
    assert "on hold" in run("lessons", "--at", at).stdout
    assert value(run("evolve", "--at", at, "--json"))["lessons"] == 1
    assert found(at, "feline") == []
    exported = tmp_path / "l.jsonl"
    assert value(run("lessons", "--export", exported, "--at", at, "--json"))["exported"] == 2
    other = tmp_path / "other"
    run("init", "--at", other, "--encoder", "bm25")
    run("add", tmp_path / "kb.jsonl", "--at", other)
    assert value(run("feedback", "--file", exported, "--at", other, "--json")) == {"lessons": [1, 2]}
    assert [(one["actor"], one["held"]) for one in value(run("lessons", "--at", other, "--json"))] == [
        ("ana", False),
        ("bo", True),
    ]
    assert "1 lesson released" in run("lessons", 2, "--release", "--at", at).stdout
    run("evolve", "--at", at)
    assert found(at, "feline") == ["cat"]


def test_holding_a_lesson_that_is_not_there_or_both_ways_is_wrong_use(at: Path) -> None:
    run("feedback", QUESTION, "-r", "q3", "--at", at)
    assert complaint(run("lessons", 7, "--hold", "--at", at)).startswith("no lesson 7 meets these conditions")
    assert complaint(run("lessons", "--hold", "--release", "--at", at)).startswith("lessons are put on hold or")


def test_a_rollback_says_how_many_lessons_wait(at: Path) -> None:
    run("feedback", QUESTION, "-r", "q3", "--at", at)
    run("evolve", "--at", at)
    assert "1 lesson on hold" in run("rollback", 0, "--at", at).stdout
    assert value(run("rollback", 1, "--at", at, "--json")) == {"epoch": 3, "as": 1, "held": 0}


def test_stats_count_what_the_memory_holds(tmp_path: Path, at: Path) -> None:
    run("feedback", QUESTION, "-r", "q3", "--at", at)
    run("evolve", "--at", at)
    run("feedback", "feline", "-r", "cat", "--at", at)
    run("add", lines(tmp_path / "e.jsonl", [{"id": "blank", "text": ""}, {"id": "cat", "text": "gone"}]), "--at", at)
    stats = value(run("stats", "--at", at, "--json"))
    assert stats.pop("bytes") > 0
    assert stats.pop("recall") == {}
    assert stats == {
        "documents": 6, "empty_documents": 1, "documents_without_keys": 0, "lessons": 2, "set_aside": 1,
        "carried_over": 0, "held": 0,
        "erasing": None,
        "pending": 1, "epoch": 1,
        "documents_touched": 1, "retrievers": ["bm25"], "policy": "guarded",
        "calls": 0, "calls_saved": 0, "false_hits": 0, "tokens": 0, "money": 0.0,
    }  # fmt: skip
    shown = dict(line.strip().split("  ", 1) for line in run("stats", "--at", at).stdout.splitlines())
    assert (shown["documents"], shown["retrievers"], shown["documents touched"]) == ("6", "bm25", "1")


# ---- JSON, exit codes, the place of the memory


@pytest.mark.parametrize(
    "arguments",
    [
        ["init"],
        ["add", "kb.jsonl"],
        ["search", "cat"],
        ["search", "zeppelin"],
        ["feedback", QUESTION, "-r", "q3"],
        ["evolve"],
        ["evolve", "--dry-run"],
        ["forget", "--actor", "nobody"],
        ["stats"],
    ],
    ids=" ".join,
)
def test_json_is_one_value_on_one_line(at: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.chdir(at.parent)
    result = run(*arguments, "--at", at, "--json")
    assert (result.exit_code, result.stderr, result.stdout.count("\n")) == (0, "", 1)
    assert isinstance(json.loads(result.stdout), dict | list)


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["init", "--encoder", "wordllama"], WRONG_USE, "InvalidSettings"),
        (["init", "--encoder", "bert"], WRONG_USE, "InvalidSettings"),
        (["add", "absent.txt"], WRONG_USE, "InvalidDocument"),
        (["search", ""], WRONG_USE, "InvalidQuery"),
        (["search", "cat", "--where", "lang"], WRONG_USE, "InvalidFilter"),
        (["feedback", QUESTION, "-r", "nope"], FAILED, "UnknownDocument"),
        (["feedback", QUESTION], WRONG_USE, "InvalidInput"),
        (["forget"], WRONG_USE, "InvalidInput"),
    ],
    ids=str,
)
def test_with_json_an_error_is_one_value_too(at: Path, arguments: list[str], code: int, error: str) -> None:
    result = run(*arguments, "--at", at, "--json")
    assert (result.exit_code, result.stderr) == (code, "")
    told = json.loads(result.stdout)
    assert (set(told), told["error"]) == ({"error", "message"}, error)


@pytest.mark.parametrize(
    "arguments",
    [["search", "cat"], ["feedback", "cat", "-r", "cat"], ["evolve"], ["forget", "--query", "cat"], ["stats"]],
    ids=" ".join,
)
def test_without_a_memory_a_command_fails_makes_none_and_says_how_to(tmp_path: Path, arguments: list[str]) -> None:
    folder = tmp_path / "kb"
    result = run(*arguments, "--at", folder)
    assert result.exit_code == FAILED
    assert complaint(result) == f"there is no memory at {folder}; create one with: evokey init --at {folder}"
    told = json.loads(run(*arguments, "--at", folder, "--json").stdout)
    assert told["error"] == "NotAMemory"
    assert not folder.exists()


def test_an_error_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(screen, "errors", screen.Screen(force_terminal=False, stderr=True))
    folder = tmp_path / ("a-rather-long-name-" * 5)
    assert run("stats", "--at", folder).stderr.endswith(f"create one with: evokey init --at {folder}\n")


def test_the_memory_is_found_in_the_environment_and_an_option_outranks_it(tmp_path: Path, at: Path) -> None:
    env = {"EVOKEY_AT": str(at)}
    assert [hit["id"] for hit in value(run("search", "sofa", "--json", env=env))] == ["cat"]
    assert value(run("stats", "--json", env=env))["documents"] == 5
    run("init", "--at", tmp_path / "other", "--encoder", "bm25", env=env)
    assert value(run("stats", "--at", tmp_path / "other", "--json", env=env))["documents"] == 0


def test_without_either_the_memory_is_in_dot_evokey_here(
    tmp_path: Path, at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert value(run("add", "kb.jsonl", "--json")) == added(5, 5)
    assert (tmp_path / ".evokey" / "evokey.toml").exists()
    assert value(run("stats", "--json"))["documents"] == 5


@pytest.mark.parametrize("path", ["notes.toml", "notes/evokey.toml"])
def test_a_memory_made_from_a_toml_file_is_searched_through_it(tmp_path: Path, path: str) -> None:
    (tmp_path / "notes.toml").write_text('[[retriever]]\nencoder = "bm25"\n')
    assert run("init", "--at", tmp_path / "notes.toml").exit_code == 0
    assert run("add", lines(tmp_path / "kb.jsonl", RECORDS), "--at", tmp_path / "notes.toml").exit_code == 0
    assert found(tmp_path / path, "sofa") == ["cat"]


def test_the_demo_removes_no_folder_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "diary.txt").write_text("mine")
    run("demo", "--out", tmp_path, "--json")
    assert (tmp_path / "memory" / "diary.txt").read_text() == "mine"


def test_looking_back_undoing_and_explaining_through_the_command_line(at: Path) -> None:
    run("feedback", QUESTION, "-r", "q3", "--actor", "ada", "--at", at)
    run("evolve", "--at", at)
    listed = value(run("epochs", "--at", at, "--json"))
    assert [(one["epoch"], one["kind"], one["current"]) for one in listed] == [
        (0, "untaught", False),
        (1, "evolve", True),
    ]
    changed = value(run("diff", 0, "--at", at, "--json"))
    assert [one["document"] for one in changed["documents"]] == ["q3"]
    assert changed["queries"][0]["after"][0] == "q3"
    told = value(run("explain", "q3", QUESTION, "--at", at, "--json"))
    assert (told["rank_after"], told["lessons"][0]["actor"]) == (1, "ada")
    assert value(run("rollback", 0, "--at", at, "--json")) == {"epoch": 2, "as": 0, "held": 1}
    assert found(at, QUESTION) == []
    for words in (("epochs",), ("diff", 0, 1), ("explain", "q3", QUESTION), ("rollback", 1)):
        shown = run(*words, "--at", at)
        assert shown.exit_code == 0 and shown.stdout.strip()


def test_queries_are_protected_listed_and_released(at: Path) -> None:
    assert value(run("protect", "purring", "-r", "cat=2", "--at", at, "--json")) == {"purring": {"cat": 2.0}}
    assert "purring" in run("protect", "--at", at).stdout
    assert value(run("protect", "purring", "--remove", "--at", at, "--json")) == {}
    assert run("protect", "purring", "--at", at).exit_code == WRONG_USE
    assert run("protect", "purring", "-r", "nobody", "--at", at).exit_code == FAILED


def test_the_doctor_finds_a_flipped_bit_and_rebuilds(at: Path) -> None:
    assert value(run("doctor", "--at", at, "--json")) == {
        "sound": True,
        "rebuilt": None,
        "learned": None,
        "findings": [],
        "installation": [],
    }
    array = next((at / "keys").rglob("owners.npy"))
    damaged = bytearray(array.read_bytes())
    damaged[-1] ^= 1
    array.write_bytes(damaged)
    found = run("doctor", "--at", at, "--json")
    assert found.exit_code == FAILED and "owners.npy: its checksum is wrong" in json.loads(found.stdout)["findings"][0]
    mended = value(run("doctor", "--rebuild", "--at", at, "--json"))
    assert mended["sound"] and mended["rebuilt"] == value(run("stats", "--at", at, "--json"))["documents"]


def test_ranges_of_numbers_filter(tmp_path: Path) -> None:
    table = tmp_path / "books.csv"
    table.write_text('id,title,text,year\na,Old,"tea, hot",1990\nb,New,tea cold,2021\nc,Unknown,tea,\n', "utf-8")
    kb = tmp_path / "books"
    assert run("add", table, "--at", kb).exit_code == 0

    def ids(*where: str) -> list[str]:
        options = [word for one in where for word in ("--where", one)]
        return sorted(hit["id"] for hit in value(run("search", "tea", *options, "--at", kb, "--json")))

    assert ids("year>=2000") == ["b"]
    assert ids("year<2000") == ["a"]
    assert ids("year>1980", "year<=2021") == ["a", "b"]
    assert ids("year=2021") == ["b"]
    assert ids("year>=new") == []  # a text beside numbers


def test_another_language_is_stemmed_by_its_own_rules(tmp_path: Path) -> None:
    notes = tmp_path / "notizen.jsonl"
    notes.write_text('{"id": "haus", "text": "Die Häuser stehen leer"}\n', "utf-8")
    assert run("init", "--encoder", "bm25", "--language", "german", "--at", tmp_path / "de").exit_code == 0
    assert run("add", notes, "--at", tmp_path / "de").exit_code == 0
    assert [hit["id"] for hit in value(run("search", "Haus", "--at", tmp_path / "de", "--json"))] == ["haus"]
    unknown = run("init", "--encoder", "bm25", "--language", "klingon", "--at", tmp_path / "kl")
    assert unknown.exit_code == WRONG_USE and "klingon" in complaint(unknown)


@pytest.mark.parametrize(("found", "named"), [(None, ".venv/bin/evokey"), ("/usr/bin/evokey", "evokey")])
def test_the_demo_says_how_to_call_what_the_shell_does_not_find(
    found: str | None, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [".venv/bin/evokey", "demo"])
    monkeypatch.setattr("shutil.which", lambda name: found)
    assert demo._program() == named
