"""Lessons → what evolve would publish: the policy is shown what was taught, and its choice is put into a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evokey.errors import InvalidInput
from evokey.evolution.audition import Stage, audition
from evokey.evolution.crossfit import MIN_CROSSFIT
from evokey.evolution.judgements import Judgements
from evokey.evolution.policy import Log, Policy, Proposal, TrainingData
from evokey.evolution.pools import CurrentPools
from evokey.evolution.restricted import RestrictedJudgements
from evokey.evolution.voices import Voices
from evokey.ledger.ledger import Ledger
from evokey.search.index import Index
from evokey.search.retriever import Retriever
from evokey.types import ALL_HEARD, EpochReport

NO_LESSONS = "no lesson says which document was right: nothing to learn"
SEARCHED = 256
"""Queries of the traffic that a policy is shown."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where lessons are learned."""

    index: Index
    ledger: Ledger
    policy: Policy
    retrievers: Sequence[Retriever]
    """Of the current epoch; or with other revisions of their encoders, to see what these would bring."""


def propose(at: Setting, log: Log, *, keep: bool = True) -> EpochReport:
    """What evolve would publish of these lessons. keep: write the pools that were renewed."""
    index, ledger = at.index, at.ledger
    pools = {one.name: CurrentPools(one, ledger.pools, index.position, index.live) for one in at.retrievers}
    heard = _audition(at, log, pools) if getattr(at.policy, "auditions", False) else log
    lessons = judge_by_unseen(heard.taught, at.retrievers)
    report, apart = _judge(at, lessons, pools), _count_restricted(log.restricted_judgements)
    if keep:
        for one in pools.values():
            one.save()
    seconds = sum(one.seconds for one in pools.values())
    report = replace(report, pools_renewed=sum(one.renewed for one in pools.values()), pools_seconds=seconds)
    actors, documents = name_left_out(heard)
    report = replace(report, left_out=heard.left_out, actors_left_out=actors, documents_left_out=documents)
    tested = describe_synthetic(heard.taught)
    reason = (
        report.reason
        + tested
        + _describe_restricted(apart)
        + _describe_left_out(report)
        + on_hold(len(ledger.lessons.find_held()))
    )
    return replace(report, reason=reason, restricted=apart)


def judge_by_unseen(lessons: Judgements, retrievers: Sequence[Retriever]) -> Judgements:
    """Choices are judged by queries that no encoder was trained on, where there are enough of them: a tuned encoder
    answers the others as if they had been taught."""
    seen = {query for query in lessons.queries if any(query in one.seen for one in retrievers)}
    unseen = frozenset(lessons.jurors) - seen
    return replace(lessons, jury=unseen) if seen and len(unseen) >= MIN_CROSSFIT else lessons


def _audition(at: Setting, log: Log, pools: Mapping[str, CurrentPools]) -> Log:
    """The lessons without those that are better left out, where several voices teach: first among the users of each
    API key, then among all voices."""
    stage = Stage(at.retrievers, at.index.fusion, pools)
    for users in (log.voices.users if log.voices else {}).values():
        log = _leave_out(at.ledger, log, users, stage)
    return _leave_out(at.ledger, log, log.voices, stage)


def _leave_out(ledger: Ledger, log: Log, voices: Voices | None, stage: Stage) -> Log:
    if voices is None:
        return log
    roles, of_document = audition(log.units, voices, stage)
    verdicts = {
        (vote.lesson, number)
        for vote in log.votes
        for number, grade in vote.verdicts.items()
        if (voices.voice_of(vote.actor), grade > 0) in roles
        or (grade > 0 and (voices.voice_of(vote.actor), number) in of_document)
    }
    ids = ledger.documents.fetch({number for _, number in verdicts})
    return log.leave_out(log.left_out | {(lesson, ids[number].id) for lesson, number in verdicts})


def name_left_out(log: Log) -> tuple[dict[str | None, int], dict[str, int]]:
    """Actors of lessons that are left out, and documents that do not learn from them, each with the number of these
    lessons, most first."""
    votes = {vote.lesson: vote for vote in log.leave_out(ALL_HEARD).votes} if log.left_out else {}
    numbers = log.ledger.documents.find({document for _, document in log.left_out})
    actors = Counter(
        votes[lesson].actor for lesson in sorted({lesson for lesson, _ in log.left_out}) if lesson in votes
    )
    documents = Counter(
        document
        for lesson, document in sorted(log.left_out)
        if lesson in votes and votes[lesson].verdicts.get(numbers.get(document, -1), 0.0) > 0
    )
    return dict(actors.most_common()), dict(documents.most_common())


def _describe_left_out(report: EpochReport) -> str:
    """What is added to a reason: no names, for it is written into the ledger."""
    actors, documents = len(report.actors_left_out), len(report.documents_left_out)
    counts = [(actors, "actor"), (documents, "document")]
    parts = [f"{count} {name}{'s' if count > 1 else ''}" for count, name in counts if count]
    return f"; lessons left out that harm others: {' and '.join(parts)} (evokey stats --learned)" if parts else ""


def _judge(at: Setting, lessons: Judgements, pools: Mapping[str, CurrentPools]) -> EpochReport:
    """Ask the policy what the lessons are worth; an empty choice means the untaught index."""
    counts = len(lessons.queries), 0, 0, len(lessons.synthetic)
    empty = EpochReport(False, "", at.index.epoch, None, None, {}, {}, *counts)
    if not lessons.queries:
        return replace(empty, reason=NO_LESSONS)
    return describe(_ask(at, lessons, pools), lessons, empty)


def describe(proposal: Proposal, lessons: Judgements, empty: EpochReport) -> EpochReport:
    """A report on a proposal; empty: one that says nothing yet."""
    report = replace(empty, held_out=proposal.held_out, taught=proposal.taught, unrelated=proposal.unrelated)
    if not proposal.changes:
        return replace(report, reason="no choice is better than the untaught index: nothing to publish")
    demoted = lessons.wrong if any(one.demotion for one in proposal.choice.values()) else {}
    touched = set[int]().union(*lessons.grades.values(), *demoted.values())
    return replace(
        report,
        reason=_reason(proposal),
        choice=proposal.choice,
        weights=proposal.weights,
        reach=proposal.reach,
        documents=len(touched),
    )


def _ask(at: Setting, lessons: Judgements, pools: Mapping[str, CurrentPools]) -> Proposal:
    ledger, policy = at.ledger, at.policy
    protected = Judgements(protected_queries(at.index, ledger), {})
    known = {*lessons.queries, *protected.queries}
    searched = ledger.traffic.queries() if policy.uses_traffic else []
    traffic = tuple(query for query in searched if query not in known)[:SEARCHED]
    return policy.propose(TrainingData(at.retrievers, at.index.fusion, lessons, pools, protected, traffic))


def protected_queries(index: Index, ledger: Ledger) -> dict[str, Mapping[int, float]]:
    """Protected queries with the numbers of their documents; without restricted ones, which no policy may see."""
    apart = set(index.restricted.tolist())
    public = {
        query: {number: grade for number, grade in grades.items() if number not in apart}
        for query, grades in ledger.protected.by_number().items()
    }
    return {query: grades for query, grades in public.items() if grades}


def check_public(index: Index, restricted: str | None, numbers: Mapping[str, int]) -> None:
    """Refuse to protect a restricted document. restricted: the field of the metadata that marks these."""
    apart = set(index.restricted.tolist())
    for id, number in numbers.items():
        if number in apart:
            raise InvalidInput(
                f"document {id!r} is restricted (metadata {restricted!r}): the guard chooses for everybody, so a "
                f"restricted document cannot be protected. Protect public documents only."
            )


def describe_synthetic(lessons: Judgements) -> str:
    """What is added to a reason where a language model wrote questions."""
    if not lessons.synthetic:
        return ""
    if lessons.jury is None:
        return "; all questions are synthetic, so nothing is known about what people ask"
    count = len(lessons.synthetic)
    return f"; {count} synthetic question{'s teach' if count > 1 else ' teaches'} too, and only people's are tested"


def on_hold(lessons: int) -> str:
    """What is added to a reason."""
    if not lessons:
        return ""
    return f"; {lessons} lesson{'s are' if lessons > 1 else ' is'} on hold (evokey lessons --held)"


def _count_restricted(own: RestrictedJudgements | None) -> int:
    """How many restricted documents lessons speak of."""
    return 0 if own is None else len(set[int]().union(*own.grades.values(), *own.wrong.values()))


def _describe_restricted(documents: int) -> str:
    """What is added to a reason."""
    if not documents:
        return ""
    return (
        f"; {documents} restricted document{'s' if documents > 1 else ''} learned separately, each from its own lessons"
    )


def _reason(proposal: Proposal) -> str:
    if proposal.taught is None:
        return "what was verified is learned: this policy has no guard"
    taught = f"taught queries {proposal.taught.before:.3f} → {proposal.taught.after:.3f}"
    if proposal.held_out is None:
        return f"{taught} (nDCG@10); too few queries to cross-fit: not tested on held-out queries"
    held, others = proposal.held_out, proposal.unrelated
    unrelated = "" if others is None else f", unrelated ones {others.before:.3f} → {others.after:.3f}"
    return f"held-out queries {held.before:.3f} → {held.after:.3f}, {taught}{unrelated} (nDCG@10)"
