"""Pay once per intent: a Zipf stream of queries in many wordings, and how many of them still need an expansion.

    python benchmarks/stream.py [--data ../shared/data] [--queries 20000] [--alpha 1.2] [--encoder bm25] [--out FILE]

Intents are NFCorpus's queries (with the further wordings of the set: titles and video descriptions) and CLINC150's
intents (150 wordings each), 3,000 nearly; ranks are dealt at random, wordings uniformly, which is the hard case. A
query that Novelty does not know costs one expansion, whose verified outcome, the judged documents, is fed back; the
memory evolves after 1,000 queries and whenever their number has doubled. Counted beside it: the distinct intents
(nobody can pay less; the paper's Θ(T^(1/α)) is about these, and about intents without end), the distinct wordings (what
a cache of exact repeats pays), and one call for each query.

A hit is false when the documents judged right for the two queries are not the same. Besides the stream, false hits are
counted on whole sets, where each query asks all others of its set, and on real queries turned into their opposite.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot
from rich.progress import track

import evokey
from evokey.bench import measures, protocols, style
from evokey.bench.data import Dataset, load, prefix
from evokey.bench.data.rows import rows
from evokey.bench.protocols import Question
from evokey.bench.runs import write_json
from evokey.bench.systems import Plain
from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.keys.words import STOP_WORDS
from evokey.loop.novelty import NEAR, SAME_WORDS, Novelty
from evokey.loop.novelty.reading import read

HERE = Path(__file__).parent
SETS = "locomo10 scifact climate_fever_evidence cranfield pubmedqa_l nfcorpus clinc150".split()
FLIPPED = "scifact locomo10 nfcorpus climate_fever_evidence cranfield clinc150".split()
OTHER_ALPHAS = (1.1, 1.3, 1.5)
MOST_FLIPS = 150
"""Per rule and set."""
SHORT_FORMS = {"titles", "vid-titles", "vid-desc", "nontopic-titles"}
"""Wordings a person may type; the form "all" is a page."""
WINDOW = 2_000
BLUE, OCHRE = "#1f5fa8", "#c78a2c"


@dataclass(frozen=True)
class Intent:
    name: str
    wordings: tuple[str, ...]
    grades: dict[str, float]

    @property
    def right(self) -> frozenset[str]:
        return frozenset(self.grades)


# ---- the intents


def by_fold(wordings: list[str]) -> tuple[str, ...]:
    """Wordings that differ in more than case, spacing and punctuation."""
    return tuple({read(text).fold: text for text in reversed(wordings)}.values())


def intents(data: Dataset) -> list[Intent]:
    """One for each set of right documents: queries with the same right documents are wordings of one intent."""
    judged = {query: grades for split in data.splits.values() for query, grades in split.items()}
    grades = {one.id: {id: grade for id, grade in one.grades.items() if grade > 0}
              for one in protocols.questions(data, judged)}  # fmt: skip
    wordings: dict[frozenset[str], list[str]] = defaultdict(list)
    first: dict[frozenset[str], dict[str, float]] = {}
    for id, text in [*data.queries.items(), *forms(data)]:
        if id in grades:
            right = frozenset(grades[id])
            first.setdefault(right, grades[id])
            wordings[right].append(text)
    return [
        Intent(f"{data.name}/{number}", by_fold(texts), first[right])
        for number, (right, texts) in enumerate(wordings.items())
    ]


def forms(data: Dataset) -> list[tuple[str, str]]:
    """Further wordings that a person may type: query id and text."""
    file = data.folder and data.folder / "query_forms.jsonl"
    found = rows(file) if file and file.exists() else ()
    return [(row["_id"], row["text"]) for _, row in found if row["form"] in SHORT_FORMS]


def zipf(count: int, alpha: float) -> np.ndarray:
    weights = np.arange(1, count + 1) ** -alpha
    return weights / weights.sum()


def stream(known: list[Intent], queries: int, alpha: float, seed: int) -> list[tuple[Intent, str]]:
    chance = np.random.default_rng(seed)
    ranked = [known[number] for number in chance.permutation(len(known))]
    picks = chance.choice(len(ranked), size=queries, p=zipf(len(ranked), alpha))
    return [(ranked[pick], ranked[pick].wordings[chance.integers(len(ranked[pick].wordings))]) for pick in picks]


# ---- the stream


class Counts:
    """What arrives, and what it costs."""

    def __init__(self) -> None:
        self.novelty = Novelty()
        self.owner: dict[str, Intent] = {}
        self.calls: list[int] = []
        self.intents: set[str] = set()
        self.folds: set[str] = set()
        self.distinct: list[tuple[int, int]] = []
        self.hits: Counter[str] = Counter()
        self.false: list[tuple[str, str]] = []

    def arrive(self, intent: Intent, query: str) -> bool:
        """Whether an expansion is paid for."""
        match = self.novelty.known(query)
        if match is None:
            self.novelty.add(query)
            self.owner[query] = intent
        else:
            kind = match.why if match.why == SAME_WORDS else "other words"
            self.hits[kind] += 1
            if self.owner[match.query].right != intent.right:
                self.hits[f"{kind}, false"] += 1
                self.hits[f"{intent.name.split('/')[0]}, false"] += 1
                self.false.append((query, match.query))
            self.hits[intent.name.split("/")[0]] += 1
        self.calls.append((self.calls[-1] if self.calls else 0) + (match is None))
        self.intents.add(intent.name)
        self.folds.add(read(query).fold)
        self.distinct.append((len(self.intents), len(self.folds)))
        return match is None

    def summary(self, alpha: float, known: int) -> dict:
        queries, hits = len(self.calls), self.hits["the same words"] + self.hits["other words"]
        wrong = self.hits["the same words, false"] + self.hits["other words, false"]
        distinct, wordings = self.distinct[-1]
        return {
            "alpha": alpha, "queries": queries, "intents": known, "intents_seen": distinct, "wordings_seen": wordings,
            "calls": self.calls[-1], "hit_rate": hits / queries, "false_hit_rate": wrong / hits,
            "hits": dict(self.hits), "false_pairs": len(set(self.false)),
            "exponent": {
                "calls": exponent(np.array(self.calls)),
                "intents": exponent(np.array(self.distinct)[:, 0]),
                "wordings": exponent(np.array(self.distinct)[:, 1]),
                "intents_expected": exponent(expectation(known, alpha, queries)),
                "paper": 1 / alpha,
            },
            "curves": {
                "queries": (at := sample(queries)),
                "calls": [self.calls[count - 1] for count in at],
                "intents": [self.distinct[count - 1][0] for count in at],
                "wordings": [self.distinct[count - 1][1] for count in at],
            },
            "false_examples": sorted(set(self.false))[:12],
        }  # fmt: skip


def expectation(known: int, alpha: float, queries: int) -> np.ndarray:
    """Distinct intents after 1, 2, … queries, by the sum of the paper's proof: Σ 1 − (1 − p_r)^T."""
    chances, found = zipf(known, alpha), np.full(queries, np.nan)
    for count in sample(queries):
        found[count - 1] = (1 - (1 - chances) ** count).sum()
    return found


def sample(queries: int) -> list[int]:
    return sorted({int(count) for count in np.geomspace(1, queries, 120)})


def exponent(curve: np.ndarray) -> float:
    """The slope over the last decade of the stream, in logarithms, at evenly spaced logarithms."""
    counts = np.array([count for count in sample(len(curve)) if count >= len(curve) / 10])
    return float(np.polyfit(np.log(counts), np.log(curve[counts - 1]), 1)[0])


class Taught:
    """nDCG@10 of the intents that come again, from the untaught index and from the one that learns on the way."""

    def __init__(self, memory: evokey.Memory, arriving: list[tuple[Intent, str]]) -> None:
        self.memory = memory
        self.seen: set[str] = set()
        self.fed: set[str] = set()
        self.scores: dict[tuple[str, str], float] = {}
        self.points: list[tuple[int, bool, float, float]] = []
        self.seconds = 0.0
        distinct = {(intent.name, query): intent for intent, query in arriving}
        self.untaught = {
            key: self.search(intent, key[1]) for key, intent in track(distinct.items(), "untaught", transient=True)
        }

    def arrive(self, position: int, intent: Intent, query: str, paid: bool) -> None:
        key = (intent.name, query)
        if intent.name in self.seen:
            if key not in self.scores:
                self.scores[key] = self.search(intent, query)
            self.points.append((position, query in self.fed, self.untaught[key], self.scores[key]))
        self.seen.add(intent.name)
        if paid:
            self.memory.feedback(query, relevant=intent.grades)
            self.fed.add(query)

    def search(self, intent: Intent, query: str) -> float:
        return measures.quality(Plain(self.memory).rank, [Question(query, query, intent.grades)])[query]

    def evolve(self) -> str:
        began = time.perf_counter()
        report = self.memory.evolve()
        self.seconds += time.perf_counter() - began
        self.scores = {}
        return report.reason

    def windows(self, queries: int) -> list[dict]:
        found = []
        for start in range(0, queries, WINDOW):
            inside = [point for point in self.points if start <= point[0] < start + WINDOW]
            entry: dict = {"from": start, "to": start + WINDOW}
            for name, kept in (("all", (True, False)), ("taught_wording", (True,)), ("other_wording", (False,))):
                some = [point for point in inside if point[1] in kept]
                entry[name] = {
                    "queries": len(some),
                    "untaught": float(np.mean([point[2] for point in some])) if some else None,
                    "taught": float(np.mean([point[3] for point in some])) if some else None,
                }
            found.append(entry)
        return found


# ---- whole sets, and opposites


def cross(folder: Path, encoder: WordLlamaEncoder) -> dict:
    """Each wording of a set arrives once, in random order; beside it, cosine alone at the same number of hits."""
    every = [(intent, wording) for intent in intents(load(folder)) for wording in intent.wordings]
    random.Random(5).shuffle(every)
    counts = Counts()
    for intent, query in track(every, f"{folder.name}: every query once", transient=True):
        counts.arrive(intent, query)
    hits = sum(counts.hits[kind] for kind in ("the same words", "other words"))
    false = sum(counts.hits[f"{kind}, false"] for kind in ("the same words", "other words"))
    owners = {query: intent for intent, query in every}
    apart = sum(not counts.owner[match].right & owners[query].right for query, match in counts.false)
    return {
        "dataset": folder.name, "wordings": len(every), "hits": hits, "false": false,
        "false_and_no_document_shared": apart,
        "same_words_other_documents": counts.hits["the same words, false"],
        "cosine_alone_false_rate_at_as_many_hits": cosine_alone(every, hits, encoder),
        "false_examples": sorted(set(counts.false))[:12],
    }  # fmt: skip


def cosine_alone(every: list[tuple[Intent, str]], hits: int, encoder: WordLlamaEncoder) -> float | None:
    if not hits:
        return None
    vectors = encoder.queries([query for _, query in every])
    nearest: list[tuple[float, bool]] = []
    for row in range(1, len(every)):
        similarities = vectors[:row] @ vectors[row]
        best = int(similarities.argmax())
        nearest.append((float(similarities[best]), every[best][0].right != every[row][0].right))
    nearest.sort(reverse=True)
    return float(np.mean([wrong for _, wrong in nearest[:hits]]))


Flip = Callable[[str, random.Random, list[str]], str | None]
AUXILIARY = re.compile(r"\b(is|are|was|were|does|do|did|can|could|has|have|will|would|should|may)\b", re.IGNORECASE)
NUMBER = re.compile(r"\b\d+\b")
TURNED = {
    "increases": "decreases", "increase": "decrease", "increased": "decreased", "reduces": "increases",
    "reduced": "increased", "reduce": "raise", "high": "low", "higher": "lower", "lower": "higher", "low": "high",
    "more": "less", "less": "more", "before": "after", "after": "before", "with": "without", "positive": "negative",
    "improves": "worsens", "activates": "inhibits", "activation": "inhibition", "inhibits": "promotes",
    "benign": "malignant", "good": "bad", "best": "worst", "first": "last", "add": "remove", "cancel": "confirm",
    "start": "stop", "on": "off", "up": "down", "early": "late", "warming": "cooling", "fast": "slow", "buy": "sell",
    "present": "absent", "younger": "older", "old": "young", "next": "previous", "all": "none", "always": "never",
    "healthy": "sick", "safe": "unsafe", "rising": "falling", "laminar": "turbulent", "subsonic": "supersonic",
    "prevent": "cause", "preventing": "causing", "stable": "unstable", "men": "women", "raw": "cooked",
}  # fmt: skip
ASKED = {"when": "where", "who": "when", "where": "when", "why": "when", "how many": "which", "how long": "why"}
JOINED = re.compile(
    r"\b([\w-]{4,}) (to|than|causes?|before|after|from|leads to|inhibits|increases|reduces|affects?|into) ([\w-]{4,})\b"
)


def negate(query: str, chance: random.Random, names: list[str]) -> str | None:
    found = AUXILIARY.search(query)
    if not found:
        return None
    if query[found.end() :].startswith((" not", "n't")):
        return query[: found.end()] + re.sub(r"^( not|n't)", "", query[found.end() :])
    return f"{query[: found.end()]} {chance.choice(['not', 'never'])}{query[found.end() :]}"


def renumber(query: str, chance: random.Random, names: list[str]) -> str | None:
    found = NUMBER.search(query)
    if not found:
        return None
    old = int(found[0])
    new = chance.choice([old + 1, old * 10, max(old - 1, 0) if old > 1 else old + 2])
    return query[: found.start()] + str(new) + query[found.end() :]


def rename(query: str, chance: random.Random, names: list[str]) -> str | None:
    own = [name for name in re.findall(r"(?<=\s)[A-Z][\w-]+", query) if name in names]
    others = [name for name in names if name not in query]
    if not own or not others or len(own) > len(query.split()) / 2:
        return None
    return re.sub(rf"\b{re.escape(own[0])}\b", chance.choice(others), query)


def turn(query: str, chance: random.Random, names: list[str]) -> str | None:
    places = [found for found in re.finditer(r"[a-z]+", query) if found[0] in TURNED]
    if not places:
        return None
    found = chance.choice(places)
    return query[: found.start()] + TURNED[found[0]] + query[found.end() :]


def ask(query: str, chance: random.Random, names: list[str]) -> str | None:
    for old, new in ASKED.items():
        if query.lower().startswith(f"{old} "):
            return f"{new.capitalize() if query[0].isupper() else new}{query[len(old) :]}"
    return None


def swap(query: str, chance: random.Random, names: list[str]) -> str | None:
    found = JOINED.search(query)
    if not found or {found[1].lower(), found[3].lower()} & STOP_WORDS or found[1].lower() == found[3].lower():
        return None
    return f"{query[: found.start()]}{found[3]} {found[2]} {found[1]}{query[found.end() :]}"


FLIPS: dict[str, Flip] = {
    "negation": negate, "number": renumber, "name": rename, "opposite": turn, "question": ask,
    "direction": swap,
}  # fmt: skip


def flips(data: Path) -> Iterator[tuple[str, str, str]]:
    """(rule, query, its opposite), of all sets in turn."""
    for name in FLIPPED:
        queries = sorted(set(load(data / name).queries.values()))
        seen = Counter(word for query in queries for word in re.findall(r"(?<=\s)[A-Z][\w-]+", query))
        small = {word for query in queries for word in re.findall(r"\b[a-z][\w-]*", query)} | STOP_WORDS
        names = sorted(word for word, count in seen.items() if count > 1 and word.lower() not in small)
        for rule, flip in FLIPS.items():
            chance = random.Random(f"{name} {rule}")
            some = chance.sample(queries, len(queries))
            made = [(query, new) for query in some if (new := flip(query, chance, names)) and new != query]
            for query, new in made[:MOST_FLIPS]:
                yield rule, query, new


def adversarial(data: Path, encoder: WordLlamaEncoder) -> dict:
    made = list(flips(data))
    found: dict[str, list[tuple[str, str, bool, float]]] = defaultdict(list)
    near = (encoder.queries([one for _, one, _ in made]) * encoder.queries([new for _, _, new in made])).sum(1)
    for (rule, query, new), similarity in zip(made, near, strict=True):
        novelty = Novelty(encoder)
        novelty.add(query)
        found[rule].append((query, new, novelty.known(new) is not None, float(similarity)))
    every = [one for some in found.values() for one in some]
    return {
        "pairs": len(every),
        "false": sum(hit for _, _, hit, _ in every),
        "false_rate": float(np.mean([hit for _, _, hit, _ in every])),
        "cosine_alone_false_rate": float(np.mean([similarity >= NEAR for *_, similarity in every])),
        "median_cosine": float(np.median([similarity for *_, similarity in every])),
        "rules": {
            rule: {
                "pairs": len(some),
                "false": sum(hit for _, _, hit, _ in some),
                "cosine_alone_false": sum(similarity >= NEAR for *_, similarity in some),
                "examples": [(query, new) for query, new, hit, _ in some if hit][:8],
            }
            for rule, some in found.items()
        },
    }


# ---- the picture


def draw(result: dict) -> style.Figure:
    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(12, 4.3), layout="constrained")
    paraphrased = result["other_streams"][-1]
    calls(left, result["stream"], "NFCorpus and CLINC150")
    calls(middle, paraphrased, "CLINC150 alone, 150 wordings each")
    windows = result["windows"]
    at = [(window["from"] + window["to"]) / 2 for window in windows]
    styles = {"taught_wording": (BLUE, "a wording that was taught"), "other_wording": (OCHRE, "another wording")}
    for name, (colour, label) in styles.items():
        for state, look in (("taught", {"lw": 2, "marker": "o", "ms": 3.5}), ("untaught", {"lw": 1.3, "ls": "--"})):
            values = [window[name][state] for window in windows]
            right.plot(at, values, color=colour, label=f"{label}: {state} index", **look)
    right.set(xlabel="queries $T$", ylabel="nDCG@10", ylim=(0, 1), xlim=(0, result["stream"]["queries"]))
    right.set_title("Intents that come again")
    right.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")
    for axes in (left, middle, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=8, ncols=1)
    return figure


def calls(axes: Any, one: dict, title: str) -> None:
    counts, curves, alpha = np.array(one["curves"]["queries"]), one["curves"], one["alpha"]
    axes.loglog(counts, counts, color="0.75", lw=1.2, label="a call for each query")
    axes.loglog(counts, curves["calls"], color=BLUE, lw=2.4, label=f"evokey, slope {one['exponent']['calls']:.2f}")
    axes.loglog(counts, curves["wordings"], color=OCHRE, lw=1.3, ls="--", label="distinct wordings: a cache of repeats")
    axes.loglog(counts, curves["intents"], color="#3a8f5c", lw=1.3, label="distinct intents: the least possible")
    tail = counts[counts >= counts[-1] / 10]
    law = 1.6 * curves["calls"][-len(tail)] * (tail / tail[0]) ** (1 / alpha)
    axes.loglog(
        tail, law, color="black", lw=1, ls=":", label=rf"paper, intents without end: slope $1/\alpha$ = {1 / alpha:.2f}"
    )
    axes.set(xlabel="queries $T$", ylabel="expansion calls", title=rf"{title}, $\alpha$ = {alpha}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--alpha", type=float, default=1.2)
    parser.add_argument("--encoder", default="bm25", help="of the memory: bm25, wordllama or hybrid")
    parser.add_argument("--evolve-first", type=int, default=1_000, help="then whenever the stream has doubled")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="the result file")
    options = parser.parse_args()
    began = time.perf_counter()
    sets = [prefix(load(options.data / name)) for name in ("nfcorpus", "clinc150")]
    known = [intent for data in sets for intent in intents(data)]
    encoder = WordLlamaEncoder()
    due = {options.evolve_first << doubled for doubled in range(options.queries.bit_length())}

    counts = Counts()
    with (
        tempfile.TemporaryDirectory() as folder,
        evokey.open(folder, encoder=None if options.encoder == "hybrid" else options.encoder) as memory,
    ):
        memory.add([document for data in sets for document in data.documents])
        arriving = stream(known, options.queries, options.alpha, options.seed)
        taught = Taught(memory, arriving)
        for position, (intent, query) in enumerate(track(arriving, "the stream")):
            if position in due:
                reason = taught.evolve()
                print(f"  {position:>6,} queries, {counts.calls[-1]:,} calls; {reason}", flush=True)
            taught.arrive(position, intent, query, counts.arrive(intent, query))
    result = {
        "stream": counts.summary(options.alpha, len(known))
        | {"seed": options.seed, "novelty": "wordllama", "near": NEAR},
        "memory": {
            "encoder": options.encoder,
            "evolved_at": sorted(at for at in due if at < options.queries),
            "evolve_seconds": taught.seconds,
        },
        "windows": taught.windows(options.queries),
        "other_streams": [],
        "sets": [],
    }
    alone = [intent for intent in known if intent.name.startswith("clinc150")]
    for alpha, some in [*((alpha, known) for alpha in OTHER_ALPHAS), (options.alpha, alone)]:
        other = Counts()
        for intent, query in track(stream(some, options.queries, alpha, options.seed), f"α = {alpha}", transient=True):
            other.arrive(intent, query)
        result["other_streams"].append(other.summary(alpha, len(some)))
    result["sets"] = [cross(options.data / name, encoder) for name in SETS]
    result["adversarial"] = adversarial(options.data, encoder)
    result["seconds"] = time.perf_counter() - began
    show(result)
    if options.out:
        write_json(options.out, result, indent=1)


def show(result: dict) -> None:
    for one in [result["stream"], *result["other_streams"]]:
        slopes = {name: round(value, 3) for name, value in one["exponent"].items()}
        print(
            f"α {one['alpha']}: {one['queries']:,} queries, {one['intents_seen']:,} of {one['intents']:,} intents, "
            f"{one['wordings_seen']:,} wordings, {one['calls']:,} calls; hit rate {one['hit_rate']:.3f}, "
            f"false {one['false_hit_rate']:.4f}; {dict(one['hits'])}; exponents {slopes}"
        )
    for window in result["windows"]:
        print(f"  {window}")
    for one in result["sets"]:
        print({key: value for key, value in one.items() if key != "false_examples"})
    flipped = result["adversarial"]
    print({key: value for key, value in flipped.items() if key != "rules"})
    for rule, one in flipped["rules"].items():
        print(f"  {rule}: {one}")
    print(f"{result['seconds']:.0f} s")


if __name__ == "__main__":
    main()
