"""The commands of evokey."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

import evokey
from evokey.cli import (
    adding,
    allow,
    bench,
    doctor,
    feedback,
    importing,
    lessons,
    loop,
    mcp,
    screen,
    seeding,
    serving,
    travel,
)
from evokey.cli import parts as parts_
from evokey.cli.demo import demo
from evokey.cli.options import (
    HERE,
    App,
    AsJson,
    At,
    Reader,
    Where,
    component,
    existing,
    existing_or_layer,
    filter_of,
    reader_of,
)
from evokey.errors import InvalidInput
from evokey.inspect import accounting, figure
from evokey.registry import Named
from evokey.settings import Settings
from evokey.types import Document, Hit

app = App(
    name="evokey",
    help="An evolving retrieval memory: an index whose document keys learn from verified answers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
LLM_COUNTERS = ("calls", "calls_saved", "false_hits", "tokens", "money")
"""What stats shows only where a language model was called, or a call was saved."""


def main() -> None:
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(screen.VisibleFormatter())
    app()


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        screen.say(evokey.__version__)
        raise typer.Exit()


@app.command()
def init(
    at: At = HERE,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help='Encoder, as listed by evokey encoders, or JSON: \'{"name": "bm25", "k1": 1.2}\'. Several are fused.'
        ),
    ] = None,
    keys: Annotated[
        str | None, typer.Option(help="How keys are built from a document: as listed by evokey keys, or JSON.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="Where keys are and how they are found: ann, or JSON. Default: all are compared.")
    ] = None,
    fusion: Annotated[str | None, typer.Option(help="How rankings are fused: weighted or reciprocal.")] = None,
    reranker: Annotated[
        str | None, typer.Option(help="Reranker for the top hits: cross-encoder or endpoint, or JSON.")
    ] = None,
    expander: Annotated[
        str | None, typer.Option(help="Query expansion: as listed by evokey expanders, or JSON.")
    ] = None,
    llm: Annotated[
        str | None, typer.Option(help="Language model for expansion and answers: as listed by evokey llms, or JSON.")
    ] = None,
    verifier: Annotated[
        str | None, typer.Option(help="Verifier for learn: as listed by evokey verifiers, or JSON.")
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Language of BM25's stemmer, such as german; none: no stemming.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="Learning rule: guarded, or paper (the paper's own rule, for comparison).")
    ] = None,
    restricted: Annotated[
        str | None,
        typer.Option(help="Metadata field that marks restricted documents: lessons on them affect no other document."),
    ] = None,
    shared_feedback: Annotated[
        bool,
        typer.Option("--shared-feedback", help="Feedback without an actor comes from many people: limit its weight."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a memory. Without options: BM25 and WordLlama, fused."""
    with screen.report_errors(as_json):
        said = [component(one) for one in encoder or ()]
        parts: dict[str, Any] = {"keys": keys, "fusion": fusion, "reranker": reranker, "policy": policy}
        parts |= {"expander": expander, "llm": llm, "verifier": verifier, "store": store}
        settings: dict[str, Any] = {name: component(one) for name, one in parts.items() if one is not None}
        if restricted is not None:
            settings["restricted"] = restricted
        if shared_feedback:
            settings["shared_feedback"] = True
        if said or language is not None:
            settings["encoder"] = said if language is None else _with_language(said, language)
        with evokey.open(at, **settings) as memory:
            stats = memory.stats()
        if as_json:
            screen.emit({"at": str(at), **stats.to_dict()})
            return
        where = escape(str(at))
        screen.say(f"memory at [bold]{where}[/]: {' + '.join(stats.retrievers)}, policy {stats.policy}")
        screen.say(f"next: evokey add FILES --at {where}")


def _with_language(encoders: list[Named], language: str) -> list[Named]:
    wanted = encoders or [one.name for one in Settings().retrievers]
    return [{"name": "bm25", "language": language} if one == "bm25" else one for one in wanted]


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    at: At = HERE,
    k: Annotated[int, typer.Option("-k", help="Number of documents.")] = 10,
    where: Where = None,
    epoch: Annotated[
        int | None, typer.Option(help="Search as of this epoch (version); 0 is the untaught index.")
    ] = None,
    group: Annotated[
        str, typer.Option(help="What a hit is: a document, or a passage (several may be of one document).")
    ] = "document",
    fold: Annotated[bool, typer.Option("--fold", help="Show near-duplicates as one hit.")] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help='Take quotes and minus signs as text, not as "phrase" and -word.')
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find documents: the index with what it has learned. No language model is called.

    A "phrase in quotes" must be in the text, a -word (or -"phrase") must not.
    """
    with screen.report_errors(as_json), existing(at) as memory:
        asked = filter_of(where)
        hits = memory.search(query, k, asked, epoch, group=group, fold=fold, operators=not plain)
        if as_json:
            screen.emit([_hit_fields(hit) for hit in hits])
        elif hits:
            screen.console.print(screen.hits_table(hits, query))
        else:
            screen.say("nothing found")


def _hit_fields(hit: Hit) -> dict[str, Any]:
    passage = {"name": hit.passage.name(hit.id), **asdict(hit.passage)}
    similar = {"similar": list(hit.similar)} if hit.similar else {}
    return {"id": hit.id, "score": hit.score, "passage": passage, **similar, **_fields(hit.document)}


def _fields(document: Document) -> dict[str, Any]:
    return {"title": document.title, "text": document.text, "metadata": dict(document.metadata)}


@app.command()
def evolve(
    at: At = HERE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would happen; publish nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Learn from the lessons: publish a new epoch (version) if it improves held-out questions."""
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        with screen.working("cross-fitting", as_json):
            report = memory.evolve(dry_run=dry_run)
        if as_json:
            screen.emit(report.to_dict())
            return
        verdict = f"[green]published epoch {report.epoch}[/]" if report.published else "[yellow]not published[/]"
        screen.say(f"{verdict}: {report.reason}")
        if report.taught is not None:
            screen.console.print(screen.report_table(report))
        left_out = screen.left_out_lines(report.actors_left_out, report.documents_left_out)
        for line in (*screen.choice_lines(report), *left_out, *screen.pool_lines(report)):
            screen.say(line)


@app.command()
def tune(
    at: At = HERE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Train and compare; publish nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train the encoder from the lessons: publish it if held-out questions find more with it than evolve reaches
    without it."""
    with screen.report_errors(as_json), existing(at) as memory:
        if not as_json:
            for cost in memory.tuning_costs():
                screen.say(escape(cost.text))
        with screen.stages(as_json) as progress:
            report = memory.tune(dry_run=dry_run, progress=progress)
        if as_json:
            screen.emit(report.to_dict())
            return
        verdict = f"[green]published epoch {report.epoch}[/]" if report.published else "[yellow]not published[/]"
        screen.say(f"{verdict}: {escape(report.reason)}")
        if report.encoders:
            screen.console.print(screen.tuned_table(report.encoders))


@app.command()
def forget(
    query: Annotated[str | None, typer.Option(help="Forget what was taught for this question.")] = None,
    actor: Annotated[str | None, typer.Option(help="Forget what this actor taught.")] = None,
    document: Annotated[str | None, typer.Option(help="Forget what this document (id) was taught.")] = None,
    traffic: Annotated[bool, typer.Option("--traffic", help="Forget the sample of searched queries.")] = False,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Erase lessons and everything learned from them. Takes effect at once."""
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        if traffic and isinstance(memory, evokey.Layer):
            raise InvalidInput("a layer beside a search function keeps no sample of searched queries")
        if query is actor is document is None and not traffic:
            raise InvalidInput("name what to forget: --query, --actor, --document or --traffic")
        with screen.working("forgetting and refitting", as_json):
            done = memory.forget(query=query, actor=actor, document=document, **({"traffic": True} if traffic else {}))
            current = memory.stats().epoch
        if as_json:
            screen.emit({**done.to_dict(), "epoch": current})
            return
        also = " and the sample of searched queries" if traffic else ""
        screen.say(f"forgot {screen.several(done.lessons, 'lesson')}{also}; searches now use epoch {current}")
        if done.revisions:
            screen.say("the tuned encoder had seen it and is gone; to train it again: evokey tune")
        if done.pending:
            screen.say(f"[yellow]not all of it is erased yet[/]: {escape(done.pending)}")


@app.command()
def stats(
    learned: Annotated[
        bool, typer.Option("--learned", help="Report who taught, which documents learned most, and which became hubs.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="With --learned: plot it into this file (PNG, SVG, PDF).")] = None,
    where: Reader = None,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Show what the memory holds; with --learned, what it has learned."""
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        if plot is not None and not learned:
            raise InvalidInput("--plot draws what was learned: add --learned")
        if learned and where:
            raise InvalidInput("--learned names actors and questions, which are the owner's: leave out --where")
        if learned and isinstance(memory, evokey.Layer):
            raise InvalidInput("--learned tells how keys have moved, and a layer beside a search function has no keys")
        if learned and isinstance(memory, evokey.Memory):
            with screen.working("accounting", as_json):
                account = accounting.report(memory)
                if plot is not None:
                    figure.plot(account, plot)
            screen.emit(account.to_dict()) if as_json else _account(account, plot)
            return
        found = memory.stats(**reader_of(memory, where))
        if as_json:
            screen.emit(found.to_dict())
            return
        counters = asdict(found)
        if not any(counters[name] for name in LLM_COUNTERS):
            counters = {name: value for name, value in counters.items() if name not in LLM_COUNTERS}
        width = max(map(len, counters))
        for name, value in counters.items():
            shown = ", ".join(value) if isinstance(value, list) else f"{value:,}" if isinstance(value, int) else value
            screen.say(f"[dim]{name.replace('_', ' '):>{width}}[/]  {shown}")


def _account(account: accounting.Account, plot: Path | None) -> None:
    screen.say(f"epoch {account.epoch}: {account.touched} of {account.documents} documents have learned")
    table = screen.plain_table("learned most", "texts", "key moved")
    for one in account.pupils:
        moved = ", ".join(f"{name} {far:.3f}" for name, far in one.moved.items())
        table.add_row(f"[bold]{escape(one.document)}[/] {escape(one.title[:50])}", str(one.taught), moved)
    screen.console.print(table)
    for name, part in (("actors", account.actors), ("queries", account.queries), ("documents", account.credited)):
        if part.largest:
            most = part.largest[0]
            who = f"{escape(str(most.name or 'no actor named'))} {most.share:.0%}"
            screen.say(f"[dim]{name:>10}[/]  {part.count}, effective number {part.effective:.1f}; largest share: {who}")
    for far in account.displacements:
        held = "within" if far.within else "[red]beyond[/]"
        screen.say(
            f"[dim]{far.retriever:>10}[/]  keys moved by {far.median:.3f} (median), "
            f"at most {far.largest:.3f}: {held} their bound"
        )
    hubs = account.together
    screen.say(
        f"[dim]{'hubs':>10}[/]  most often in a top ten: {hubs.largest_before} → {hubs.largest_after} of "
        f"{hubs.queries} queries; skewness {hubs.skewness_before:.2f} → {hubs.skewness_after:.2f}"
    )
    for line in screen.left_out_lines(account.actors_left_out, account.documents_left_out):
        screen.say(line)
    if plot is not None:
        screen.say(f"plotted into {escape(str(plot))}")


app.command("import")(importing.import_)
app.add_typer(bench.app, name="bench")
app.add_typer(serving.api_keys, name="api-keys")
for command in (
    adding.add,
    demo,
    *feedback.COMMANDS,
    *loop.COMMANDS,
    *mcp.COMMANDS,
    *lessons.COMMANDS,
    *allow.COMMANDS,
    *parts_.COMMANDS,
    *seeding.COMMANDS,
    *serving.COMMANDS,
    *travel.COMMANDS,
    doctor.doctor,
):
    app.command()(command)
