"""Commands to compare, undo, explain and copy: epochs, diff, rollback, explain, protect, backup, migrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from evokey.cli import screen
from evokey.cli.options import (
    HERE,
    AsJson,
    At,
    Reader,
    component,
    existing_or_layer,
    parse_grade,
    parse_place,
    reader_of,
)
from evokey.errors import InvalidInput
from evokey.inspect import migrate as migrate_
from evokey.postgres.address import find_address
from evokey.types import DocumentChange, Epoch, EpochDiff, Explanation, QueryChange, View

DOCUMENTS, QUERIES = 20, 5
"""Documents that a diff shows, and queries: so many of the largest losses, so many of the largest gains."""


def epochs(at: At = HERE, as_json: AsJson = False) -> None:
    """List the epochs (versions of what was learned); 0 is the untaught index. To search one: search --epoch N."""
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        found = memory.epochs()
        current = memory.stats().epoch
        if as_json:
            screen.emit([_epoch(one, current) for one in found])
            return
        table = screen.plain_table("epoch", "kind", "when", "lessons up to", "what happened")
        for one in found:
            mark = "[green]●[/] " if one.number == current else "  "
            when = datetime.fromtimestamp(one.time, UTC).strftime("%Y-%m-%d %H:%M") if one.time else ""
            reason = escape(str(one.report.get("reason", ""))) + (" [dim](redacted)[/]" if one.redacted else "")
            table.add_row(f"{mark}{one.number}", one.kind, when, str(one.lessons_to), reason)
        screen.console.print(table)


def _epoch(one: Epoch, current: int) -> dict[str, Any]:
    return {
        "epoch": one.number,
        "kind": one.kind,
        "time": one.time,
        "lessons_to": one.lessons_to,
        "omitted": sorted(one.omitted),
        "redacted": one.redacted,
        "revisions": dict(one.revisions),
        "current": one.number == current,
        "report": dict(one.report),
    }


def diff(
    before: Annotated[int, typer.Argument(help="The earlier epoch; 0 is the untaught index.")],
    after: Annotated[int | None, typer.Argument(help="The later epoch. Default: the current one.")] = None,
    where: Reader = None,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Compare two epochs: what documents have learned, and which taught questions have other results."""
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        found = memory.diff(before, memory.stats().epoch if after is None else after, **reader_of(memory, where))
        if as_json:
            screen.emit(found.to_dict())
            return
        _show_diff(found)


def _show_diff(found: EpochDiff) -> None:
    screen.say(
        f"epoch {found.before} → {found.after}: {screen.several(len(found.documents), 'document')} changed; of "
        f"{screen.several(found.queries_compared, 'taught or protected question')} {len(found.queries)} "
        "have different results"
    )
    _show_documents(found.documents)
    _show_queries(found.queries)


def _show_documents(changes: Sequence[DocumentChange]) -> None:
    seen = [change for change in changes if change.taught_before != change.taught_after or _moves(change)]
    if seen:
        table = screen.plain_table("document", "taught texts", "key moved")
        for change in seen[:DOCUMENTS]:
            taught = f"{change.taught_before} → {change.taught_after}"
            table.add_row(escape(change.document), taught, _moves(change) or "no")
        screen.console.print(table)
    if len(seen) > DOCUMENTS:
        screen.say(f"[dim]and {screen.several(len(seen) - DOCUMENTS, 'document')} more[/]")
    if len(seen) < len(changes):
        count = screen.several(len(changes) - len(seen), "document")
        screen.say(f"[dim]{count} whose keys moved too little to be shown[/]")


def _show_queries(queries: Sequence[QueryChange]) -> None:
    changed = sorted((query for query in queries if _quality(query)), key=_gain)
    for query in changed[:QUERIES] + changed[QUERIES:][-QUERIES:]:
        screen.say(f"\n[bold]{escape(query.query)}[/]  nDCG@10 {_quality(query)}")
        screen.say(f"  before: [dim]{escape(', '.join(query.before[:3]))}[/]")
        screen.say(f"  after:  {escape(', '.join(query.after[:3]))}")
    if len(changed) < len(queries):
        count = screen.several(len(queries) - len(changed), "question")
        screen.say(f"\n[dim]{count} with different results, neither better nor worse[/]")


def _moves(change: DocumentChange) -> str:
    """Of the retrievers whose key for this document moved, how far."""
    moves = {name: _change(change.moved_before[name], after) for name, after in change.moved_after.items()}
    return ", ".join(f"{name} {move}" for name, move in moves.items() if move)


def _quality(query: QueryChange) -> str:
    return _change(query.quality_before or 0.0, query.quality_after or 0.0)


def _change(before: float, after: float) -> str:
    """Two figures as they are shown; nothing where they look the same."""
    shown = f"{before:.2f}", f"{after:.2f}"
    return "" if shown[0] == shown[1] else " → ".join(shown)


def _gain(change: QueryChange) -> float:
    return (change.quality_after or 0.0) - (change.quality_before or 0.0)


def rollback(
    epoch: Annotated[int, typer.Argument(help="The epoch to return to; 0 is the untaught index.")],
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Return to an older epoch. Nothing is deleted: lessons that it did not include are on hold until they are released
    (evokey lessons). To undo it, roll back to the epoch before."""
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        made = memory.rollback(epoch)
        held = memory.stats().held
        if as_json:
            screen.emit({"epoch": made.number, "as": epoch, "held": held})
            return
        screen.say(f"searches now use epoch {made.number}, with the same lessons as epoch {epoch}")
        if held:
            screen.say(f"{screen.several(held, 'lesson')} on hold; release them with: evokey lessons --held --release")


def explain(
    id: Annotated[str, typer.Argument(help="The document.")],
    query: Annotated[str | None, typer.Argument(help="A question: explain the document's score for it.")] = None,
    where: Reader = None,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Show what a document has learned, from whom, and how that changes its score for a question."""
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        found = memory.explain(id, query, **reader_of(memory, where))
        if as_json:
            screen.emit(found.to_dict())
            return
        _show_explanation(found)


def _show_explanation(found: Explanation) -> None:
    screen.say(f"[bold]{escape(found.document)}[/]: {screen.several(found.lesson_count, 'lesson')}")
    if found.carried_over:
        screen.say(f"  {found.carried_over} of them carried over from an earlier text, most of which is still there")
    if found.set_aside:
        screen.say(f"  {found.set_aside} of them set aside: the text was another one then")
    if found.left_out:
        screen.say(f"  {found.left_out} of them left out: they harm what others ask (evokey stats --learned)")
    for lesson in found.lessons[-20:]:
        grade = lesson.verdicts[0].grade
        colour = "green" if grade > 0 else "red" if grade < 0 else "dim"
        who = f" [dim]by {escape(lesson.actor)}[/]" if lesson.actor else ""
        screen.say(f"  [{colour}]{grade:+g}[/] {escape(lesson.query)}{who}")
    if found.query is None:
        return
    ranks = [str(rank) if rank else "beyond 100" for rank in (found.rank_before, found.rank_after)]
    screen.say(f"\n“{escape(found.query)}”: rank {ranks[0]} untaught, [bold]{ranks[1]}[/] now")
    if not found.in_reach:
        screen.say("  not similar to any taught question: the untaught index answers it")
    if found.passage is not None and found.passage.where:
        screen.say(f"  passage [cyan]{escape(found.passage.name(found.document))}[/]: {escape(found.passage_reason)}")
    for view in found.views:
        _show_view(view)


def _show_view(view: View) -> None:
    screen.say(f"  [bold]{view.retriever}[/] {view.before:.3f} → {view.after:.3f}, by its {view.best_key}")
    if view.probability is not None:
        said = f"about something taught with probability {view.probability:.2f}"
        screen.say(f"    {said}: what was learned counts by {view.share:.0%}")
    if view.query_moved_by:
        lessons = ", ".join(f"“{one.text}”" for one in view.query_moved_by)
        screen.say(f"    the lens moved the query by {view.query_moved:.3f}, because of {escape(lessons)}")
    if view.moved:
        screen.say(f"    its key has moved by {view.moved:.3f}")
    for one in view.contributions[:5]:
        screen.say(f"    {one.amount:+.3f} from “{escape(one.text)}”")
    if view.nearest_taught:
        screen.say(f"    nearest taught question: “{escape(view.nearest_taught)}”")
    if view.terms:
        shares = ", ".join(f"{term.word} {term.before:.2f} → {term.after:.2f}" for term in view.terms[:8])
        screen.say(f"    words: {escape(shares)}")


def protect(
    query: Annotated[str | None, typer.Argument(help="A question whose results must not get worse.")] = None,
    relevant: Annotated[
        list[str] | None, typer.Option("-r", "--relevant", help="Id of a right document; id=2 gives it a grade.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Stop protecting the question.")] = False,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Protect a question: no epoch that ranks its documents worse than the untaught index is published.

    Without a question: list the protected ones.
    """
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        if query is not None:
            if bool(relevant) == remove:
                raise InvalidInput("give the documents with --relevant, or --remove to stop protecting the question")
            memory.protect(query, {} if remove else dict(parse_grade(one) for one in relevant or []))
        protected = memory.protected_queries()
        if as_json:
            screen.emit({question: dict(grades) for question, grades in protected.items()})
            return
        for question, grades in protected.items():
            screen.say(f"[bold]{escape(question)}[/]  {escape(', '.join(grades))}")
        screen.say(screen.several(len(protected), "protected question"))


def backup(
    to: Annotated[Path, typer.Argument(help="A new directory; it can be opened as a memory, or replace the original.")],
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Copy the memory as it is at one moment, while other processes may search it and write to it."""
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        with screen.working("copying", as_json):
            memory.backup(to)
        if as_json:
            screen.emit({"backup": str(to)})
            return
        screen.say(f"copied to [bold]{escape(str(to))}[/]; what is forgotten later stays in this copy")


def migrate(
    source: Annotated[
        Path, typer.Argument(parser=parse_place, metavar="FROM", help="Directory, or URL of a PostgreSQL database.")
    ],
    target: Annotated[
        Path, typer.Argument(parser=parse_place, metavar="TO", help="A new directory, or the URL of a database.")
    ],
    from_name: Annotated[str | None, typer.Option(help="Name of the memory in the database FROM.")] = None,
    to_name: Annotated[str | None, typer.Option(help="Name of the copy in the database TO.")] = None,
    store: Annotated[
        str | None, typer.Option(help="Store of the copy's keys, by name or JSON. Default: the one of its place.")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin again, without what an interrupted attempt has left.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Copy a memory to another place or store, and check the copy; the source is only read.

    The copy is checked by the checksum of every table, and by searches that must find the same. If it is interrupted,
    the same command goes on where it was.
    """
    with screen.report_errors(as_json):
        places = [find_address(one, name) or one for one, name in ((source, from_name), (target, to_name))]
        with screen.bar("migrating", as_json, 100) as show:
            done = migrate_.migrate(
                places[0],
                places[1],
                None if store is None else component(store),
                lambda what, share: show(round(100 * share)),
                restart=restart,
            )
        if as_json:
            screen.emit({"from": str(places[0]), "to": str(places[1]), **asdict(done)})
            return
        screen.say(
            f"copied {screen.several(done.documents, 'document')}, {screen.several(done.lessons, 'lesson')} and "
            f"{screen.several(done.epochs, 'epoch')} to [bold]{escape(str(places[1]))}[/]"
        )
        scores = "with the same scores" if done.equal_scores else "with scores that differ by rounding"
        screen.say(
            f"checked: {done.tables} tables have equal checksums; {screen.several(done.queries, 'question')} find "
            f"{done.overlap:.1%} of the same documents, {scores}"
        )


COMMANDS = (backup, migrate, epochs, diff, rollback, explain, protect)
