"""The command import: an index made elsewhere becomes a memory, with its vectors."""

from __future__ import annotations

from typing import Annotated

import typer

import evokey
from evokey.cli import screen
from evokey.cli.options import HERE, AsJson, At, component, existing
from evokey.errors import InvalidInput
from evokey.importing import SOURCES, import_index, load_source
from evokey.importing.records import Place
from evokey.postgres.address import Address
from evokey.settings import FILE, place


def import_(
    engine: Annotated[str, typer.Argument(help=f"Where the index is from: {', '.join(SOURCES)}.")],
    path: Annotated[str, typer.Argument(help="Its folder or file, or the URL of its server.")],
    encoder: Annotated[
        str | None,
        typer.Option(help="Encoder that made the vectors; questions are encoded by it. A name, or JSON with options."),
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Collection or table, where there are several.")] = None,
    text: Annotated[str | None, typer.Option(help="Field with the text; default: text, page_content, …")] = None,
    id: Annotated[str | None, typer.Option("--id", help="Field with the id.")] = None,
    vector: Annotated[str | None, typer.Option(help="Field with the vector, where there are several.")] = None,
    texts: Annotated[str | None, typer.Option(help="Of faiss: JSONL file with id and text.")] = None,
    trust_pickle: Annotated[
        bool, typer.Option("--trust-pickle", help="Of langchain's FAISS: read its pickle, which you wrote yourself.")
    ] = False,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Read an index made elsewhere into a memory, with its vectors: nothing is embedded again but a sample, to check
    the encoder."""
    with screen.report_errors(as_json):
        source = load_source(engine, Place(path, collection, text, id, vector, texts, trust_pickle))
        with _memory(at, encoder) as memory:
            stored = import_index(memory, source)
            size = len(memory)
    if as_json:
        screen.emit({"imported": stored, "documents": size})
    else:
        screen.say(f"imported {stored:,} documents with their vectors; the memory has {size:,}")


def _memory(at: At, encoder: str | None) -> evokey.Memory:
    """The memory that is there; or a new one, with one dense encoder and one key for each document."""
    if isinstance(at, Address) or (place(at) / FILE).exists():
        return existing(at)
    if encoder is None:
        raise InvalidInput(
            "name the encoder that made the vectors: --encoder all-MiniLM-L6-v2 (they are listed by: evokey encoders)"
        )
    return evokey.open(at, encoder=component(encoder), keys="full")
