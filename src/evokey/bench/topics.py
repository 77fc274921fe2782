"""Topics of a set: clusters of similar questions, by the vectors of WordLlama, whatever encoder is measured."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from scipy.cluster.vq import kmeans2

from evokey.encoders.wordllama import WordLlamaEncoder

TOPICS = 5
SMALLEST = 0.5
"""A topic is chosen among those with at least this part of the mean number of questions."""


def cluster(texts: Sequence[str], seed: int) -> list[bool]:
    """Of each text, whether it belongs to one topic that is drawn by lot."""
    count = min(TOPICS, len(texts) // 2)
    vectors = WordLlamaEncoder().queries(list(texts)).astype(np.float64)
    _, labels = kmeans2(vectors, count, minit="++", rng=seed)
    sizes = np.bincount(labels, minlength=count)
    large = [topic for topic in range(count) if sizes[topic] >= max(2, SMALLEST * len(texts) / count)]
    chosen = random.Random(seed).choice(large)
    return [bool(label == chosen) for label in labels]
