"""The models of a memory, made when they are first needed: one may take seconds to load."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path

from evokey import settings as settings_
from evokey.errors import InvalidSettings
from evokey.ledger.ledger import Ledger
from evokey.loop.expand import Expanding
from evokey.protocols import LLM, Expander, Generator, Verifier
from evokey.registry import Described
from evokey.types import Attempt


class Components:
    def __init__(self, settings: settings_.Settings, folder: Path, ledger: Ledger, now: Callable[[], float]) -> None:
        self._settings, self._folder, self._ledger, self._now = settings, folder, ledger, now
        self._expanders: dict[str, Expanding] = {}
        self._verifiers: dict[str, Verifier] = {}

    def close(self) -> None:
        """Expanders know these components, and the ledger through them: without them it goes, and its files with it."""
        self._expanders.clear()

    @property
    def forgets(self) -> int:
        """How many forgets there have been."""
        return self._ledger.forgets.count

    @cached_property
    def llm(self) -> LLM | None:
        found: LLM | None = settings_.build(self._settings, "llm")
        return found

    @cached_property
    def generator(self) -> Generator | None:
        return settings_.build_generator(self._settings, self.llm)

    def answering(self) -> Generator:
        """The generator, or an error that says how to get one."""
        if self.generator is None:
            raise InvalidSettings(
                "this memory has no language model to answer with; name one when it is made: "
                "evokey.open(…, llm={'name': 'openai', 'model': …}), or in its evokey.toml"
            )
        return self.generator

    @property
    def closed_generator(self) -> Generator | None:
        """One that answers from what the model knows, without documents."""
        return settings_.build_generator(self._settings, self.llm, closed=True)

    def verifier(self, attempt: Attempt) -> Verifier:
        """Who judges an attempt: that may depend on what is known to be right."""
        name = settings_.choose_verifier(self._settings, attempt, answering=self._settings.llm is not None)
        if name not in self._verifiers:
            self._verifiers[name] = settings_.build_verifier(self._settings, name, self.llm, self._folder)
        return self._verifiers[name]

    def expanding(self, expander: Described | None = None) -> Expanding:
        """The memory's own expander, or another."""
        settings = self._settings if expander is None else settings_.change(self._settings, expander=expander)
        name = getattr(expander, "identity", None) or repr(sorted(settings.expander.items()))
        if name not in self._expanders:
            right = partial(self._ledger.lessons.right, restricted=settings.restricted)

            def make() -> Expander:
                made: Expander = settings_.build(settings, "expander", llm=self.llm)
                return made

            self._expanders[name] = Expanding(make, self._ledger.expansions, right, self._now)
        return self._expanders[name]
