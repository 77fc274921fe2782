"""A model with a daily bound: so many calls, tokens and dollars, counted in a file that several processes may share.

Before a call the most it can cost is set aside: its prompt, estimated, and max_tokens of answer. Where that would pass
the bound the call is not made. Afterwards what was set aside is replaced by what it did cost; a call that failed keeps
its prompt on the bill. Days are those of UTC.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, fields
from datetime import UTC, datetime
from pathlib import Path

from evokey import registry
from evokey.errors import BudgetSpent, InvalidSettings
from evokey.llm.request import Answering, estimated_prompt, estimated_tokens, passed_on, price_of, turns
from evokey.protocols import LLM
from evokey.registry import Named
from evokey.types import Completion, Message, Spent

COLUMNS = [column.name for column in fields(Spent)]
SCHEMA = f"CREATE TABLE IF NOT EXISTS spent (day TEXT PRIMARY KEY, {', '.join(f'{name} REAL' for name in COLUMNS)})"
ADD = f"INSERT INTO spent VALUES (?, {', '.join('?' * len(COLUMNS))}) ON CONFLICT (day) DO UPDATE SET " + ", ".join(
    f"{name} = {name} + excluded.{name}" for name in COLUMNS
)


class Budgeted:
    def __init__(
        self,
        llm: LLM | Named,
        at: str | Path,
        *,
        calls: int | None = None,
        tokens: int | None = None,
        money: float | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Bounds for one day; money is in US dollars, and needs the prices of the llm."""
        self.llm: LLM = registry.build("llm", llm)
        self.identity = self.llm.identity
        self._bounds = {"calls": calls, "tokens": tokens, "money": money}
        self._now, self._at = now, Path(at).expanduser()
        if all(bound is None for bound in self._bounds.values()):
            raise InvalidSettings("budgeted needs a bound for the day: calls, tokens or money")
        for name, bound in self._bounds.items():
            if bound is not None and not (math.isfinite(bound) and bound >= 0):
                raise InvalidSettings(f"budgeted: {name} is a number from 0 on, not {bound}")
        if money is not None and self.price(1, 1) is None:
            raise InvalidSettings(
                f"budgeted cannot count the money of {self.identity}: set its prompt_price and answer_price"
            )
        self._at.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._open() as tally:
                tally.execute(SCHEMA)
        except sqlite3.DatabaseError as error:
            raise InvalidSettings(f"budgeted: {self._at} cannot keep a tally ({error}); name another file") from error

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Completion:
        turns(messages, max_tokens, temperature)
        with self._set_aside(messages, max_tokens) as bill:
            answer = self.llm.complete(messages, max_tokens=max_tokens, temperature=temperature)
            bill.append(answer.spent)
        return answer

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Answering:
        """Who leaves before the end is billed for what came, estimated."""
        turns(messages, max_tokens, temperature)
        with self._set_aside(messages, max_tokens) as bill:
            pieces: list[str] = []
            stream = passed_on(self.llm, messages, max_tokens, temperature)
            while True:
                try:
                    pieces.append(next(stream))
                except StopIteration as end:
                    answer: Completion = end.value
                    bill.append(answer.spent)
                    return answer
                try:
                    yield pieces[-1]
                except GeneratorExit:
                    bill.append(self._estimate(messages, estimated_tokens("".join(pieces))))
                    stream.close()
                    raise

    def spent_today(self) -> Spent:
        """What today has cost, with what is set aside for calls under way."""
        with self._open() as tally:
            return self._read(tally, self._today())

    def price(self, prompt_tokens: int, answer_tokens: int) -> float | None:
        return price_of(self.llm, prompt_tokens, answer_tokens)

    @contextmanager
    def _set_aside(self, messages: Sequence[Message], max_tokens: int) -> Iterator[list[Spent]]:
        """Whoever asks puts what the call did cost on the bill; with nothing on it, the prompt is paid."""
        day, most, bill = self._today(), self._estimate(messages, max_tokens), list[Spent]()
        with self._open() as tally:
            tally.execute("BEGIN IMMEDIATE")
            self._check(self._read(tally, day), most)
            tally.execute(ADD, (day, *astuple(most)))
            tally.execute("COMMIT")
        try:
            yield bill
        finally:
            real = bill[0] if bill else self._estimate(messages, 0)
            change = [after - before for after, before in zip(astuple(real), astuple(most), strict=True)]
            with self._open() as tally:
                tally.execute(ADD, (day, *change))

    def _check(self, spent: Spent, most: Spent) -> None:
        for name, bound in self._bounds.items():
            before, more = _amount(spent, name), _amount(most, name)
            if bound is not None and before + more > bound + 1e-12:
                raise BudgetSpent(
                    f"{self.identity} was not asked: {name} for today are bounded at {bound:g}, {before:g} are spent "
                    f"or set aside, and this call may take {more:g}. Raise {name}, lower max_tokens, or wait for "
                    f"tomorrow (UTC). Tally: {self._at}"
                )

    def _estimate(self, messages: Sequence[Message], answer_tokens: int) -> Spent:
        prompt = estimated_prompt(messages)
        return Spent(1, prompt, answer_tokens, self.price(prompt, answer_tokens) or 0.0)

    def _read(self, tally: sqlite3.Connection, day: str) -> Spent:
        row = tally.execute(f"SELECT {', '.join(COLUMNS)} FROM spent WHERE day = ?", (day,)).fetchone()
        return Spent(round(row[0]), round(row[1]), round(row[2]), row[3], row[4]) if row else Spent()

    def _today(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).date().isoformat()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._at, timeout=60, isolation_level=None)) as tally:
            yield tally


def _amount(spent: Spent, name: str) -> float:
    return spent.prompt_tokens + spent.answer_tokens if name == "tokens" else float(getattr(spent, name))
