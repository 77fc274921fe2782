"""Run a benchmark script with the package of another checkout, to have the version before beside the one now.

    python benchmarks/another.py CHECKOUT SCRIPT [OPTION …]

Everything comes from CHECKOUT/src, except the protocols (who teaches, who is tested) and the data sets: those are ours,
so that both versions get the same lessons and the same questions, also under protocols that the other one lacks.
"""

from __future__ import annotations

import runpy
import sys
import tempfile
from pathlib import Path

OURS = Path(__file__).parents[1] / "src" / "evokey" / "bench"
SHARED = ("protocols.py", "topics.py", "data")


def use(checkout: Path, links: Path) -> None:
    """Import from the other checkout, and these parts of its bench from ours."""
    sys.path.insert(0, str(checkout / "src"))
    import evokey.bench

    if checkout.resolve() not in Path(evokey.bench.__file__).resolve().parents:
        raise SystemExit(f"{checkout} has no package of its own: expected {checkout / 'src' / 'evokey'}")
    for name in SHARED:
        (links / name).symlink_to(OURS / name)
    evokey.bench.__path__.insert(0, str(links))


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    _, checkout, script, *options = sys.argv
    with tempfile.TemporaryDirectory() as links:
        use(Path(checkout), Path(links))
        path = Path(script).resolve()
        sys.argv = [str(path), *options]
        sys.path.insert(0, str(path.parent))
        runpy.run_path(str(path), run_name="__main__")


if __name__ == "__main__":
    main()
