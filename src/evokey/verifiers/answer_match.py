"""A retrieved passage contains a gold answer (DPR), whole words, without case, accents, articles and punctuation.

That a passage holds the answer does not say that it answers. So the rule is strict about what it vouches for:
- an answer that says little (yes, no, a number, a label such as SUPPORTS, less than four letters and digits) or that
  the question itself says proves nothing, and is no gold answer here;
- only the text counts, unless titles is set: a title, such as a date, is shared by many passages;
- an answer in more than `most` of the first k passages tells none of them apart, and one word must be in a single one.
  The attempt is a success all the same.
An answer of more than a dozen words is never expected word for word: where it is not found, that is an abstention.
On LoCoMo's 1,537 answered questions and BM25's top 10, 87 % of the vouched documents are judged right (63 % for plain
containment, titles too); they are 26 % of the judged ones among the hits (32 %). Its yes is right in 95 % of 366 cases,
its no in 41 % of 995: people say a thing in many words, so a no here only says that nothing was proved.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from evokey.encoders.bm25 import STOP_WORDS
from evokey.types import Attempt, Hit, Ruling
from evokey.verifiers.rulings import abstain, check, count, first, rule
from evokey.verifiers.words import contains, words

SAY_LITTLE = STOP_WORDS | frozenset(
    (
        "yes no true false none unknown maybe likely unlikely never always both neither one two three four five six "
        "seven eight nine ten once twice zero half supports supported refutes refuted disputed enough info information"
    ).split()
)
SAID_SO = 12
"""Words: what is longer is said in other words by whoever else says it."""


class AnswerMatch:
    name: ClassVar[str] = "answer-match"
    looks_at: ClassVar[Literal["retrieval"]] = "retrieval"

    def __init__(
        self, k: int = 10, threshold: float = 1, *, letters: int = 4, most: int = 3, titles: bool = False
    ) -> None:
        """threshold: how many of the first k passages must contain an answer. letters: the fewest letters and digits of
        an answer that proves something. most: an answer in more passages vouches for none."""
        count(self.name, k=k, letters=letters, most=most)
        check(self.name, threshold=threshold)
        self.k, self.threshold = k, threshold
        self._letters, self._most, self._titles = letters, most, titles
        self.identity = f"answer-match@{k}/{threshold:g}/{letters}/{most}{'/titles' if titles else ''}"

    def verify(self, attempt: Attempt) -> Ruling:
        if not attempt.hits:
            return abstain("nothing was found")
        golds = [gold for gold in map(words, attempt.expected) if self._proves(gold, words(attempt.query))]
        if not golds:
            return abstain("no expected answer is known that would prove something")
        passages = {hit.id: self._words(hit) for hit in first(attempt.hits, self.k)}
        holding = [(gold, [id for id, text in passages.items() if contains(text, gold)]) for gold in golds]
        found = {id for _, ids in holding for id in ids}
        if not found and all(len(gold) > SAID_SO for gold in golds):
            return abstain(f"no passage holds the answer, but none says more than {SAID_SO} words just so")
        vouched = {id: 1.0 for gold, ids in holding if len(ids) <= self._few(gold) for id in ids}
        return rule(len(found), self.threshold, "passages with an answer:", vouched)

    def _words(self, hit: Hit) -> list[str]:
        title = words(hit.document.title) if self._titles else []
        return title + words(hit.document.text)

    def _proves(self, gold: list[str], query: list[str]) -> bool:
        """Long enough without the words that say little, not of digits alone, and not said by the question."""
        telling = [word for word in gold if word not in SAY_LITTLE]
        letters = self._letters if all(word.isascii() for word in gold) else 2
        spelled = any(not word[0].isdigit() for word in telling)
        return spelled and len("".join(telling)) >= letters and not set(gold) <= set(query)

    def _few(self, gold: list[str]) -> int:
        return self._most if sum(word not in SAY_LITTLE for word in gold) > 1 else 1
