"""The demo as a data set: the documentation of the standard library, and all wordings of the demo's questions."""

from __future__ import annotations

from evokey.bench.data.dataset import Dataset
from evokey.demo import run as demo

NAME = "demo"


def read(split: str) -> Dataset:
    judged = {one.text: dict.fromkeys(one.relevant, 1) for one in demo.questions()}
    return Dataset(NAME, demo.documents(), {text: text for text in judged}, judged, {split: judged}, split=split)
