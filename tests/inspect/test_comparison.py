"""Who wins by clicks and votes: with a difference, by chance, and when one query is asked all day."""

from __future__ import annotations

import random

from evokey.inspect.comparison import Impression, compare, judge
from evokey.types import Other, Rating, Shown


def impressions(queries: int, times: int, better: float, seed: int = 0) -> list[Impression]:
    """Of so many queries, asked so many times; in so many cases the first epoch wins, else the other."""
    chance = random.Random(seed)
    return [Impression(f"q{n}", 1 if chance.random() < better else -1) for n in range(queries) for _ in range(times)]


def test_a_clear_difference_has_a_winner_and_an_interval_around_the_margin() -> None:
    told = judge(4, 3, "interleaved", impressions(60, 5, 0.7))
    assert told.winner == 4 and 0 < told.low < told.margin < told.high
    assert judge(4, 3, "interleaved", impressions(60, 5, 0.3)).winner == 3


def test_chance_wins_about_as_often_as_the_interval_says() -> None:
    won = sum(judge(1, 0, "shadow", impressions(60, 5, 0.5, seed)).winner is not None for seed in range(400))
    assert won <= 32  # 5 % of 400 are 20


def test_few_queries_decide_nothing() -> None:
    """Five that agree are no more than chance, however often they are asked."""
    told = judge(1, 0, "interleaved", impressions(5, 100, 1.0))
    assert told.winner is None and told.low < 0 < told.margin
    assert judge(1, 0, "interleaved", impressions(8, 100, 1.0)).winner == 1


def test_one_query_that_is_asked_all_day_decides_nothing() -> None:
    others = [Impression(f"q{n}", -1 if n % 2 else 1) for n in range(100)]
    told = judge(1, 0, "interleaved", [*others, *(Impression("again and again", 1) for _ in range(5_000))])
    assert told.winner is None and told.margin < 0.2


def shown(id: str, other: Other, documents: tuple[str, ...] = ("a", "b", "c")) -> Shown:
    return Shown(id, f"question {id}", None, 0.0, 2, documents, (), None, other)


def test_clicks_and_upvotes_count_for_the_epoch_that_brought_the_document() -> None:
    mixed = Other("interleaved", 1, ("b",), ("c",))
    showings = [shown(name, mixed) for name in "wxyz"]
    up = Rating("x", None, "question x", True, None, ("b#part",), 0.0, 2)
    down = Rating("z", None, "question z", False, None, (), 0.0, 2)
    (told,) = compare(showings, {"w": ["a"], "y": ["c"]}, [up, down])
    assert (told.impressions, told.wins, told.losses, told.queries) == (4, 1, 1, 2)


def test_a_shadow_wins_where_it_has_what_was_clicked_further_up() -> None:
    shadow = Other("shadow", 1, ("c", "a", "b"))
    (told,) = compare([shown("w", shadow)], {"w": ["c"]}, [])
    assert (told.mode, told.wins, told.losses) == ("shadow", 0, 1)


def test_with_both_rankings_a_click_counts_by_how_much_higher_one_has_the_document() -> None:
    rankings = (("a", "b", "c"), ("b", "a", "c"))
    mixed = Other("interleaved", 1, ("b",), ("c",), rankings)
    (told,) = compare([shown(name, mixed) for name in "wxy"], {"w": ["a"], "x": ["b"], "y": ["c"]}, [])
    assert (told.wins, told.losses, told.queries) == (1, 1, 2)
    assert told.margin == 0.0
