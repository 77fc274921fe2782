"""What requests say and what answers tell, as OpenAPI shows it. Values of evokey.types are shown as they are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evokey import checks
from evokey.types import Answer as Answered
from evokey.types import Hit as Found
from evokey.types import Passage

Text = Annotated[str, Field(min_length=1, max_length=checks.LONGEST_QUERY)]
Id = Annotated[str, Field(min_length=1, max_length=checks.LONGEST_ID)]
User = Annotated[
    str | None,
    Field(max_length=200, min_length=1, description="The user of the key whose word it is; needs the scope teach-as."),
]
Where = Annotated[
    dict[str, Any] | None,
    Field(description='Filter on metadata: {"lang": "en"}, {"year": {"gte": 2020}}, or Haystack\'s filters.'),
]
Grades = Annotated[
    list[Id] | dict[Id, float],
    Field(description='Ids of right documents or passages ("guide.md#install"), or ids with grades.'),
]
K = Annotated[int, Field(ge=1, le=1_000)]
Count = Annotated[int, Field(ge=1, le=1_000, description="Entries of the page.")]
Number = Annotated[int, Field(ge=0, le=2**62)]
EpochName = Number | Literal["candidate"] | None
"""An epoch, or the proposal that is not published yet."""


class Said(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid")


def example(**fields: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [fields]})


# ---- requests


class NewCollection(Said):
    model_config = example(name="manual", encoder=["bm25", "wordllama"])
    name: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,62}$")]
    encoder: list[Literal["bm25", "wordllama"]] = Field(default=["bm25", "wordllama"], min_length=1, max_length=2)
    language: str | None = Field(None, pattern="^[a-z]{2,20}$", description="Language of BM25's stemmer.")
    restricted: str | None = Field(None, max_length=200, description="Metadata field that marks restricted documents.")


class NewDocument(Said):
    id: Id
    text: str = Field(max_length=checks.LONGEST_TEXT)
    title: str = Field("", max_length=checks.LONGEST_TITLE)
    metadata: dict[str, Any] = Field(default_factory=dict)


class AddDocuments(Said):
    model_config = example(
        documents=[
            {"id": "install.md", "title": "Install", "text": "Run pip install evokey.", "metadata": {"lang": "en"}}
        ]
    )
    documents: list[NewDocument] = Field(min_length=1, max_length=10_000)
    vectors: list[list[float]] | None = Field(
        None, description="One for each document, where the memory takes vectors."
    )


class Search(Said):
    model_config = example(query="how do I install it", k=3)
    query: Text
    k: K = 10
    where: Where = None
    epoch: EpochName = Field(None, description="Search as of this epoch; 0 is the untaught index.")
    compare: EpochName = Field(None, description="Interleave the hits with those of this epoch.")
    group: Literal["document", "passage"] = "document"
    fold: bool = Field(False, description="Show near-duplicates as one hit.")
    operators: bool = Field(False, description='A "phrase in quotes" must be there, a -word must not.')
    explore: Annotated[int, Field(ge=0, le=100)] = Field(0, description="Places for hits of other rankings.")
    vector: list[float] | None = Field(None, description="The query's, where the memory takes vectors.")
    text: bool = Field(False, description="Return whole documents, not only the passage that answers.")
    keep: bool = Field(True, description="Keep what was shown, so that it can be rated.")
    user: User = None


class Ask(Said):
    model_config = example(query="how do I install it", k=5)
    query: Text
    k: Annotated[int, Field(ge=1, le=50)] = 5
    where: Where = None
    stream: bool = Field(False, description="Answer as server-sent events: piece …, then answer.")
    user: User = None


class Feedback(Said):
    model_config = example(query="how do I install it", relevant=["install.md"])
    query: Text
    relevant: Grades = Field(default=[])
    irrelevant: list[Id] = Field(default=[], description="Ids of wrong documents.", max_length=1_000)
    units: list[Text] = Field(default=[], max_length=1_000, description="Expansion units that helped.")
    vector: list[float] | None = None
    user: User = None


class ManyFeedback(Said):
    model_config = example(lessons=[{"query": "how do I install it", "relevant": {"install.md": 2}}])
    lessons: list[Feedback] = Field(min_length=1, max_length=10_000)


class Rate(Said):
    model_config = example(query_id="0f0e0d0c0b0a09080706050403020100", vote="down", reason="outdated")
    query_id: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    vote: Literal["up", "down", "none"] = Field(description="none withdraws the vote.")
    reason: Literal["wrong document", "outdated", "not in the documents", "bad answer"] | None = Field(
        None, description="Why a vote is down."
    )
    cited: list[Id] | None = Field(None, max_length=100, description="Which of what was shown was right.")
    user: User = None


class Click(Said):
    model_config = example(query_id="0f0e0d0c0b0a09080706050403020100", document="install.md")
    query_id: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    document: Id


class Learn(Said):
    model_config = example(query="how do I install it", expected=["by pip"])
    query: Text
    expected: list[Text] = Field(default=[], max_length=100, description="Right answers, any of which will do.")
    relevant: Grades | None = None
    user: User = None


class Evolve(Said):
    model_config = example(dry_run=True)
    dry_run: bool = Field(False, description="Report what would happen; publish nothing.")


class Stage(Said):
    model_config = example(job="0f0e0d0c0b0a09080706050403020100")
    job: Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="The last dry run of evolve.")]


class Rollback(Said):
    model_config = example(epoch=0)
    epoch: Number


class Forget(Said):
    model_config = example(actor="web/ada", preview=True)
    query: Text | None = None
    actor: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    document: Id | None = None
    traffic: bool = Field(False, description="Forget the sample of searched queries.")
    preview: bool = Field(False, description="Only tell what would be forgotten.")


class Protect(Said):
    model_config = example(query="how do I install it", relevant=["install.md"])
    query: Text
    relevant: Grades = Field(description="Documents that must not rank worse; an empty list stops protecting.")


class Explain(Said):
    model_config = example(document="install.md", query="how do I install it")
    document: Id
    query: Text | None = None


class Lessons(Said):
    model_config = example(lessons=[1])
    lessons: list[Annotated[int, Field(ge=1, le=2**62)]] = Field(min_length=1, max_length=100_000)


class Review(Said):
    model_config = example(right=["install.md"], wrong=[])
    right: list[Id] = Field(default=[], max_length=100)
    wrong: list[Id] = Field(default=[], max_length=100)
    skip: bool = False
    user: User = None


class NewKey(Said):
    model_config = example(name="web", scopes=["read", "teach"], collections=["default"])
    name: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9.-]{0,62}$")]
    scopes: list[Literal["read", "teach", "teach-as", "admin"]] = Field(default=["read"], min_length=1)
    collections: list[Annotated[str, Field(max_length=63)]] = Field(default=["*"], min_length=1, max_length=1_000)
    actor: Annotated[str, Field(max_length=200)] = ""
    where: Where = None
    rate: Annotated[float, Field(gt=0, le=1e6, description="Requests per second.")] = 50.0
    expires: Annotated[float, Field(ge=0, le=1e12, description="Unix time.")] | None = None


# ---- answers


class PassageOut(BaseModel):
    name: str
    text: str
    start: int
    end: int
    where: str
    anchor: str

    @classmethod
    def of(cls, id: str, one: Passage) -> PassageOut:
        return cls(name=one.name(id), text=one.text, start=one.start, end=one.end, where=one.where, anchor=one.anchor)


class DocumentOut(BaseModel):
    number: int | None = None
    id: str
    title: str
    text: str
    metadata: dict[str, Any]
    sections: list[dict[str, Any]] = []


class HitOut(BaseModel):
    id: str
    score: float
    title: str
    passage: PassageOut
    metadata: dict[str, Any]
    similar: list[str]
    epoch: int | None = Field(description="The epoch that brought it, where two are compared; below 0: the candidate.")
    text: str | None = None
    sections: list[dict[str, Any]] | None = None

    @classmethod
    def of(cls, hit: Found, text: bool) -> HitOut:
        document = hit.document
        sections = [{"start": one.start, "end": one.end, "where": one.where} for one in document.sections]
        return cls(
            id=hit.id, score=hit.score, title=document.title, passage=PassageOut.of(hit.id, hit.passage),
            metadata=dict(document.metadata), similar=list(hit.similar), epoch=hit.epoch,
            text=document.text if text else None, sections=sections if text else None,
        )  # fmt: skip


class Results(BaseModel):
    query_id: str | None = Field(description="By which it can be rated; null where nothing is kept.")
    epoch: int
    hits: list[HitOut]


class Sources(BaseModel):
    document: str
    passage: PassageOut


class AnswerOut(BaseModel):
    query_id: str | None
    query: str
    text: str = Field(description="Empty where the documents do not answer.")
    citations: list[str]
    sources: list[Sources]
    hits: list[HitOut]
    model: str
    finished: bool

    @classmethod
    def of(cls, answer: Answered, query_id: str | None) -> AnswerOut:
        sources = [
            Sources(document=one.document, passage=PassageOut.of(one.document, one.passage)) for one in answer.sources
        ]
        return cls(
            query_id=query_id, query=answer.query, text=answer.text, citations=list(answer.citations), sources=sources,
            hits=[HitOut.of(hit, False) for hit in answer.hits], model=answer.model, finished=answer.finished,
        )  # fmt: skip


class JobOut(BaseModel):
    id: str
    collection: str
    dry_run: bool
    state: Literal["waiting", "proposing", "publishing", "done", "failed"]
    progress: float
    begun: float
    ended: float | None
    report: dict[str, Any] | None
    preview: dict[str, Any] | None
    error: str | None


class Counted(BaseModel):
    count: int


class Fine(BaseModel):
    ok: bool = True
