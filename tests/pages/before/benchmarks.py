"""A small set in BEIR layout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import small_sets

small_sets.gap(Path("DATA"), intents=8)
