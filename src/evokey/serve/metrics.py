"""Counters for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from evokey.serve.collections import Collection

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Metrics:
    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "evokey_requests", "Requests that were answered.", ("route", "method", "status"), registry=registry
        )
        self.seconds = Histogram(
            "evokey_request_seconds",
            "Seconds until an answer was sent.",
            ("route",),
            buckets=BUCKETS,
            registry=registry,
        )
        self.running = Gauge("evokey_requests_running", "Requests being answered.", registry=registry)
        self.ratings = Counter("evokey_ratings", "Votes.", ("collection", "vote"), registry=registry)
        self.empty = Counter(
            "evokey_searches_without_hits", "Searches that found nothing.", ("collection",), registry=registry
        )
        self.searches = Counter("evokey_searches", "Searches and answers.", ("collection",), registry=registry)
        self.alarms = Counter("evokey_alarms", "Alarms after an epoch.", ("collection", "figure"), registry=registry)
        self._gauges = {
            name: Gauge(f"evokey_{name}", text, ("collection",), registry=registry)
            for name, text in {
                "documents": "Documents.", "lessons": "Lessons.", "pending_lessons": "Lessons not learned yet.",
                "epoch": "The epoch that searches read.",
            }.items()
        }  # fmt: skip

    def render(self, memories: Mapping[str, Collection]) -> bytes:
        for name, memory in memories.items():
            told = memory.stats()
            counts = (told.documents, told.lessons, told.pending, told.epoch)
            for gauge, count in zip(self._gauges.values(), counts, strict=True):
                gauge.labels(name).set(count)
        return generate_latest(self._registry)
