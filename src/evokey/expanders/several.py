"""Several methods together: the union of their units, the sum of their costs. One that fails loses only its own."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import ClassVar

from evokey.errors import ExpansionFailed, InvalidSettings
from evokey.expanders.base import check
from evokey.expanders.units import normal, tidy
from evokey.protocols import Expander, Look
from evokey.types import Expansion, Spent, Unit, digest

log = logging.getLogger(__name__)


class Several:
    name: ClassVar[str] = "several"
    search: ClassVar[str] = "blend"
    needs: ClassVar[str] = ""

    def __init__(self, methods: Sequence[Expander], *, search: str = "", units: int = 32) -> None:
        check(self.name, units=units)
        if not isinstance(methods, Sequence) or not methods:
            raise InvalidSettings(
                f"expander 'several' needs a list of methods, such as ['hyde', 'prf'], not {methods!r}"
            )
        self._methods = methods
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


def _common(searches: Sequence[str]) -> str:
    return searches[0] if len(set(searches)) == 1 else "blend"
