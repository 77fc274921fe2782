"""A property that is worked out once for each instance, without a lock for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from evokey.once import cached_property


class Made:
    def __init__(self, make: Callable[[], int]) -> None:
        self._make = make

    @cached_property
    def value(self) -> int:
        """What it is."""
        return self._make()


def test_a_value_is_worked_out_once() -> None:
    made: list[int] = []
    one = Made(lambda: made.append(1) or 7)  # type: ignore[func-returns-value]
    assert (one.value, one.value, len(made)) == (7, 7, 1)
    assert Made.value.__doc__ == "What it is."


def test_instances_do_not_wait_for_each_other() -> None:
    begun, end = threading.Event(), threading.Event()

    def slowly() -> int:
        begun.set()
        assert end.wait(30)
        return 1

    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(lambda: Made(slowly).value)
        assert begun.wait(30)
        assert threads.submit(lambda: Made(lambda: 2).value).result(30) == 2
        end.set()
        assert waiting.result(30) == 1
