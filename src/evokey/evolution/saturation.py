"""When a round of learning has nothing more to give (the paper's stopping rule)."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Saturation:
    """Patience batches in a row whose largest gain stays below (1 − margin) of the best so far: saturated."""

    patience: int = 3
    margin: float = 0.05
    best: float = 0.0
    waited: int = 0

    def after(self, gain: float) -> Saturation:
        """The state after a batch whose largest gain was this."""
        waited = self.waited + 1 if self.best and gain <= (1 - self.margin) * self.best else 0
        return replace(self, best=max(self.best, gain), waited=waited)

    def restart(self) -> Saturation:
        """The state after keys evolved: the best gain is remembered, and waiting begins again."""
        return replace(self, waited=0)

    @property
    def saturated(self) -> bool:
        return self.waited >= self.patience
