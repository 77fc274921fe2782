"""The tools. Their descriptions are what an agent knows of them: they say when to call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, ParamSpec, TypeVar

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from evokey import checks
from evokey.errors import EvokeyError, InvalidInput
from evokey.mcp.caller import Door
from evokey.mcp.replies import Answered, Counts, Erased, Evolved, Explained, Found, Recorded, Results
from evokey.serve.replies import Refusal, status_of

Text = Annotated[str, Field(min_length=1, max_length=checks.LONGEST_QUERY)]
Id = Annotated[str, Field(min_length=1, max_length=checks.LONGEST_ID)]
Ids = Annotated[list[Id], Field(max_length=100)]
Filter = Annotated[
    dict[str, Any] | None, Field(description='Conditions on metadata: {"lang": "en"}, {"year": {"gte": 2020}}.')
]
Given = ParamSpec("Given")
Returned = TypeVar("Returned")


class Tools:
    """Each method is a tool."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def search(
        self,
        query: Annotated[Text, Field(description="The question, as the user asked it.")],
        k: Annotated[int, Field(ge=1, le=50)] = 5,
        where: Filter = None,
    ) -> Results:
        """Find passages that answer a question. Call it before you answer anything that the documents may cover.

        Pass the question in the user's own words: the memory learns from them. Afterwards call `used` with the ids
        that your answer rests on. The question and what was found are kept for a week, for that call alone."""
        caller = self._door.enter("read")
        hits = caller.memory.search(query, k, caller.where(where))
        shown = caller.memory.show(query, hits, actor=caller.actor(None))
        return Results(shown, [Found.of(hit) for hit in hits])

    def ask(
        self,
        query: Annotated[Text, Field(description="The question, as the user asked it.")],
        k: Annotated[int, Field(ge=1, le=50, description="Documents that the model reads.")] = 5,
        where: Filter = None,
    ) -> Answered:
        """Have a question answered from the documents, with citations, by the memory's own language model. Call it
        where a finished answer is wanted; to read the passages yourself, call `search`. The question and the answer
        are kept for a week, for `used`."""
        caller = self._door.enter("read")
        answer = caller.memory.ask(query, k, caller.where(where))
        shown = caller.memory.show(query, answer.hits, answer, caller.actor(None))
        return Answered.of(answer, shown)

    def used(
        self,
        query_id: Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="As `search` or `ask` returned it.")],
        ids: Annotated[Ids, Field(description="Ids of the hits that your answer rests on; [] where none helped.")],
    ) -> Recorded:
        """Tell which hits you used. Call it once after every answer that you gave from a search: one short call, and
        the next search for such a question finds them first. Name only what was right; a hit that you merely read is
        not used. Calling it again for a query_id replaces what you said."""
        caller = self._door.enter("teach")
        caller.check_seen(ids)
        caller.count_lessons(None)
        rating = caller.memory.rate(query_id, True if ids else None, None, ids, caller.actor(None))
        return Recorded(None if rating is None else rating.lesson, caller.memory.stats().pending)

    def teach(
        self,
        query: Annotated[Text, Field(description="The question, as a user would ask it.")],
        relevant: Annotated[Ids, Field(description="Ids of documents or passages that answer it.")],
        irrelevant: Annotated[Ids, Field(description="Ids of documents that look right and are wrong.")] = [],  # noqa: B006
        units: Annotated[
            list[Text],
            Field(max_length=50, description="Your own expansions that led there: rewordings, sub-questions, terms."),
        ] = [],  # noqa: B006
    ) -> Recorded:
        """Teach what is right for a question. Call it when you found the answer by another way than the first search:
        after rewording it, by reading on, or because the user corrected you. Give your rewordings as `units`: where
        that helps other questions, evolve makes them keys of the documents too."""
        caller = self._door.enter("teach")
        caller.check_seen([*relevant, *irrelevant])
        caller.count_lessons(None)
        lesson = caller.memory.feedback(query, relevant, irrelevant, units, caller.actor(None))
        caller.audit("feedback 1")
        return Recorded(lesson.number, caller.memory.stats().pending)

    def explain(
        self,
        document: Annotated[Id, Field(description="Id of a document.")],
        query: Annotated[Text | None, Field(description="A question, to see how learning changed its rank.")] = None,
    ) -> Explained:
        """Say why a document is found: what it was taught, and its rank for a question before and after learning. Call
        it when a hit surprises you."""
        caller = self._door.enter("read")
        return Explained.of(caller.memory.explain(document, query, where=caller.where(None)))

    def stats(self) -> Counts:
        """Count documents, lessons, and lessons that wait for `evolve` (pending)."""
        caller = self._door.enter("read")
        found = caller.memory.stats(caller.where(None))
        return Counts(found.documents, found.lessons, found.pending, found.epoch, found.documents_touched)

    def evolve(
        self,
        dry_run: Annotated[bool, Field(description="Only report what would happen.")] = False,
    ) -> Evolved:
        """Learn from the lessons so far: publishes a new epoch if that improves held-out questions, else nothing. Call
        it when `pending` has grown by ten or more, or at the end of a task; not after every lesson."""
        caller = self._door.enter("admin", whole=True)
        caller.audit("evolve, dry run" if dry_run else "evolve")
        return Evolved.of(caller.memory.evolve(dry_run))

    def forget(
        self,
        query: Annotated[Text | None, Field(description="Forget what was taught for this question.")] = None,
        actor: Annotated[str | None, Field(max_length=1_000, description="Forget what this actor taught.")] = None,
        document: Annotated[Id | None, Field(description="Forget what this document was taught.")] = None,
        preview: Annotated[bool, Field(description="Only count the lessons.")] = False,
    ) -> Erased:
        """Erase lessons, and all that was learned from them, for good. Call it only when a person asks for that. The
        conditions hold together; documents stay."""
        if query is actor is document is None:
            raise InvalidInput("name what to forget: query, actor or document")
        caller = self._door.enter("admin", whole=True)
        if preview:
            return Erased(len(caller.memory.lessons(query, actor, document)), True, caller.memory.epoch)
        done = caller.memory.forget(query, actor, document)
        caller.audit("forget")
        return Erased(done.lessons, False, caller.memory.epoch)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a tool needs, and what it does to the memory."""

    scope: str
    hints: ToolAnnotations


READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
KINDS = {
    "search": Kind("read", READS),
    "ask": Kind("read", ToolAnnotations(read_only_hint=True, open_world_hint=True)),  # calls a language model
    "used": Kind("teach", ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False)),
    "teach": Kind("teach", ToolAnnotations(destructive_hint=False, idempotent_hint=False, open_world_hint=False)),
    "explain": Kind("read", READS),
    "stats": Kind("read", READS),
    "evolve": Kind("admin", ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False)),
    "forget": Kind("admin", ToolAnnotations(destructive_hint=True, idempotent_hint=True, open_world_hint=False)),
}


def report_errors(call: Callable[Given, Returned], hidden: str) -> Callable[Given, Returned]:
    """The same, with errors that an agent can act on told as such. Others stay in the log of the server. hidden: a path
    of this machine that no message tells."""

    @wraps(call)
    def tool(*args: Given.args, **named: Given.kwargs) -> Returned:
        try:
            return call(*args, **named)
        except Refusal as refusal:
            raise ToolError(str(refusal.detail)) from refusal
        except EvokeyError as error:
            if status_of(error) == 500:
                raise
            raise ToolError(str(error).replace(hidden, "…")) from error

    return tool
