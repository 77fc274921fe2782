"""Several methods together: the union of their units, the sum of their costs. One that fails loses only its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, ClassVar

from evokey.errors import ExpansionFailed, InvalidSettings
from evokey.expanders.base import check, make
from evokey.expanders.units import normal, tidy
from evokey.protocols import LLM, Expander, Look
from evokey.types import Expansion, Spent, Unit, digest

log = logging.getLogger(__name__)

Method = str | Mapping[str, Any] | Expander
"""A method by name, by name with options ({"name": "hyde", "units": 8}), or already made."""


class Several:
    name: ClassVar[str] = "several"
    search: ClassVar[str] = "blend"
    needs: ClassVar[str] = ""

    def __init__(self, methods: Sequence[Method], llm: LLM | None = None, *, search: str = "", units: int = 32) -> None:
        check(self.name, units=units)
        if isinstance(methods, str) or not methods:
            raise InvalidSettings(
                f"expander 'several' needs a list of methods, such as ['hyde', 'prf'], not {methods!r}"
            )
        self._methods = [_made(method, llm) for method in methods]
        self._search, self._most = search, units
        self.identity = f"{self.name}({'+'.join(method.identity for method in self._methods)})"

    def expand(self, query: str, look: Look) -> Expansion:
        made: list[Expansion] = []
        failed: list[ExpansionFailed] = []
        for method in self._methods:
            try:
                made.append(method.expand(query, look))
            except ExpansionFailed as error:
                failed.append(error)
        if not made:
            reasons = "; ".join(map(str, failed))
            raise ExpansionFailed(f"all of {len(failed)} methods failed: {reasons}") from failed[0]
        for lost in failed:
            log.warning("expanded by the other methods alone: %s", lost)
        models = dict.fromkeys(one.model for one in made if one.model)
        prompts = [one.prompt for one in made if one.prompt]
        return Expansion(
            query,
            self._union(query, made),
            self.name,
            self._search or _common([one.search for one in made]),
            " + ".join(models) or None,
            digest(*prompts) if prompts else None,
            sum((one.spent for one in made), Spent()),
        )

    def _union(self, query: str, made: Sequence[Expansion]) -> tuple[Unit, ...]:
        """The first units of each, then the second ones, … What one method seeks, another must not steer away from."""
        turns = zip_longest(*(one.units for one in made))
        units = [unit for unit in chain.from_iterable(turns) if unit is not None]
        sought = {normal(unit.text) for unit in units if unit.positive}
        kept = [unit for unit in units if unit.positive or normal(unit.text) not in sought]
        return tidy(sorted(kept, key=lambda unit: not unit.positive), query, most=self._most)


def _made(method: Method, llm: LLM | None) -> Expander:
    if isinstance(method, str):
        return make(method, llm)
    if not isinstance(method, Mapping):
        return method
    options = dict(method)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise InvalidSettings(f"a method with options needs its name: {{'name': 'hyde', …}}, not {method!r}")
    return make(name, llm, **options)


def _common(searches: Sequence[str]) -> str:
    return searches[0] if len(set(searches)) == 1 else "blend"
