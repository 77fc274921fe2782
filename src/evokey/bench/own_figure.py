"""The picture of `evokey bench --at`: what learning changes, a line for each group of questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evokey.bench.own import Effect, OwnReport
from evokey.errors import InvalidInput, UnknownComponent

try:
    import matplotlib.pyplot as plt

    from evokey.bench import style
except ModuleNotFoundError as error:
    raise UnknownComponent(f"figures need {error.name}; install it with: pip install 'evokey[bench]'") from error

BETTER, WORSE, UNCLEAR = "#1f5fa8", "#c2452d", "#8a8a8a"


def draw(report: OwnReport, path: Path) -> None:
    """The change of nDCG@10 of each group, with its interval of 95 %."""
    rows = list(_rows(report))[::-1]
    if not rows:
        raise InvalidInput("there is nothing to plot: there are no lessons yet")
    with plt.rc_context(style.STYLE):
        figure, axis = plt.subplots(figsize=(6.4, 0.9 + 0.34 * len(rows)))
        for place, (_, one) in enumerate(rows):
            colour = UNCLEAR if not one.clear else BETTER if one.gain > 0 else WORSE
            axis.plot([one.low, one.high], [place, place], color=colour, linewidth=1.6)
            axis.plot([one.gain], [place], "o", color=colour)
        axis.axvline(0, **style.ZERO)
        axis.set_yticks(range(len(rows)), [f"{name} ({one.questions})" for name, one in rows])
        axis.set_xlabel("change of nDCG@10 by learning")
        try:
            figure.savefig(path, dpi=200, bbox_inches="tight")
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"{path} cannot be drawn ({error}); name a file that ends in .png, .svg or .pdf"
            ) from error
        finally:
            plt.close(figure)


def _rows(report: OwnReport) -> Iterator[tuple[str, Effect]]:
    for kind in report.kinds.values():
        for name, one in (("related", kind.related), ("unrelated", kind.unrelated), ("asked again", kind.asked_again)):
            if one is not None:
                yield f"{kind.name}, {name}", one
    if report.by_seeds is not None:
        yield "people, by synthetic lessons alone", report.by_seeds
    if report.judged_traffic is not None:
        yield "searched, judged", report.judged_traffic
