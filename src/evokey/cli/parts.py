"""Commands for the components of a memory: encoders, keys, llms, expanders, parts list them; expand; export-onnx."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

import evokey
from evokey import registry
from evokey.cli import screen
from evokey.cli.options import HERE, AsJson, At, component, existing
from evokey.errors import ExpansionFailed, UnknownComponent
from evokey.types import Expansion


def encoders(as_json: AsJson = False) -> None:
    """List the encoders: which are installed, and how to install the others."""
    list_parts("encoder", as_json)


def keys(as_json: AsJson = False) -> None:
    """List the key builders: how a document's keys are made from its text."""
    list_parts("keys", as_json)


def llms(as_json: AsJson = False) -> None:
    """List the language models."""
    list_parts("llm", as_json)


def expanders(as_json: AsJson = False) -> None:
    """List the methods of query expansion."""
    list_parts("expander", as_json)


def parts(
    kind: Annotated[str, typer.Argument(help=f"Kind of component: {', '.join(registry.OFFERS)}.")],
    as_json: AsJson = False,
) -> None:
    """List the components of any kind, those of other packages too."""
    with screen.report_errors(as_json):
        if kind not in registry.OFFERS:
            raise UnknownComponent(
                f"there is no kind of component called {kind}; choose one of: {', '.join(registry.OFFERS)}"
            )
        list_parts(kind, as_json)


def expand(
    query: Annotated[str, typer.Argument(help="The query to expand.")],
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--with", help="Expander, or JSON with its options; repeat for several. Default: the memory's own."
        ),
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Also show what each expansion retrieves.")] = False,
    k: Annotated[int, typer.Option("-k", help="Number of hits to compare.")] = 5,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Show the units of an expansion; with --compare, what each method retrieves."""
    with screen.report_errors(as_json), existing(at) as memory:
        trials: list[Trial] = []
        methods: list[str | None] = [*method] if method else [None]
        for one in methods:
            with screen.working("expanding" if one is None else f"expanding with {one}", as_json):
                trials.append(_try(memory, query, one, k if compare else 0))
        plain = [hit.id for hit in memory.search(query, k)] if compare else []
        if as_json:
            screen.emit(
                {"query": query, **({"plain": plain} if compare else {}), "expansions": [asdict(t) for t in trials]}
            )
        else:
            _show(plain, trials)
        if all(one.error for one in trials):
            raise typer.Exit(screen.FAILED)


@dataclass(frozen=True, slots=True)
class Trial:
    method: str
    expansion: Expansion | None
    error: str | None
    hits: list[str]


def _try(memory: evokey.Memory, query: str, method: str | None, k: int) -> Trial:
    try:
        expansion = memory.expand(query, None if method is None else component(method))
    except ExpansionFailed as error:
        return Trial(method or "", None, str(error), [])
    hits = [hit.id for hit in memory.search(query, k, expansion=expansion)] if k else []
    return Trial(expansion.expander, expansion, None, hits)


def _show(plain: list[str], trials: list[Trial]) -> None:
    for one in trials:
        if one.expansion is None:
            screen.errors.print(f"[yellow]{escape(one.method)}[/]: {escape(one.error or '')}", soft_wrap=True)
            continue
        made = one.expansion
        spent = made.spent
        bill = f"{spent.calls} calls, {spent.prompt_tokens + spent.answer_tokens} tokens, {spent.seconds:.1f} s"
        how = f"reused from {made.like!r}" if made.like else bill if spent.calls else "no model called"
        screen.say(f"[bold]{made.expander}[/] [dim]searches by {made.search}; {escape(how)}[/]")
        for unit in made.units:
            screen.say(f"  {'[green]+[/]' if unit.positive else '[red]−[/]'} {escape(unit.text)}")
        if not made.units:
            screen.say("  [dim]no units: the query is searched alone[/]")
    if plain:
        table = screen.plain_table("", "query alone", *(one.method for one in trials))
        for rank, id in enumerate(plain):
            table.add_row(str(rank + 1), escape(id), *(_mark(one.hits, rank, plain) for one in trials))
        screen.console.print(table)


def _mark(hits: list[str], rank: int, plain: list[str]) -> str:
    """A hit; green where the query alone does not find it."""
    if rank >= len(hits):
        return ""
    return escape(hits[rank]) if hits[rank] in plain else f"[green]{escape(hits[rank])}[/]"


def list_parts(kind: str, as_json: bool) -> None:
    found = registry.parts(kind)
    if as_json:
        screen.emit([asdict(part) for part in found])
        return
    table = screen.plain_table("", kind, "what it is", "to install")
    for part in found:
        mark = "[green]●[/]" if part.installed else "[dim]○[/]"
        about = part.about if part.package == "evokey" else f"{part.about} (from {part.package})".strip()
        table.add_row(mark, f"[bold]{part.name}[/]", escape(about), escape(part.install or ""))
    screen.console.print(table)


def export_onnx(
    model: Annotated[str, typer.Argument(help="A preset such as all-MiniLM-L6-v2, a name on the hub, or a folder.")],
    folder: Annotated[
        Path | None, typer.Argument(help="Output folder. Default: where encoder onnx looks for it.")
    ] = None,
    precision: Annotated[str, typer.Option(help="fp32, or int8: smaller and faster, almost as exact.")] = "int8",
    as_json: AsJson = False,
) -> None:
    """Export a model to ONNX, to encode without torch. Then use encoder onnx with this model or folder."""
    with screen.report_errors(as_json):
        export = registry.load("tool", "export-onnx")
        with screen.working(f"exporting {model}", as_json):
            made = export(model, folder, precision)
        if as_json:
            screen.emit({"model": model, "at": str(made), "precision": precision})
            return
        screen.say(f"{escape(model)} in {precision} at [bold]{escape(str(made))}[/]")


COMMANDS = (encoders, keys, llms, expanders, parts, expand, export_onnx)
