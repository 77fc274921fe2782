from __future__ import annotations

import pytest

from evokey.llm.answers import answer_of


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Paris.", "Paris."),
        ("<think>France …</think>\n\nParis.", "Paris."),
        ("<think>France …", ""),
        ("France …</think>Paris.", "Paris."),
        ("<think>a</think>Paris<THINK>b</THINK>.", "Paris."),
        ("```json\n[1, 2]\n```", "[1, 2]"),
        ("```\none\n```\nand\n```\ntwo\n```", "```\none\n```\nand\n```\ntwo\n```"),
        ("Sure! Here are three queries:\n1. a\n2. b", "1. a\n2. b"),
        ("Here is the passage:\n\nParis is a city.", "Paris is a city."),
        ("<think>x</think>Certainly, here you go: \n```json\n{}\n```", "{}"),
        ("Here is where the river ends.", "Here is where the river ends."),
        ("Sure", "Sure"),
        ("Great Britain is an island. It is big.", "Great Britain is an island. It is big."),
        ("OK, I can do that.\n\nParis.", "Paris."),
        ("Okay-ish results: see below.", "Okay-ish results: see below."),
        ("", ""),
    ],
)
def test_the_answer_without_what_surrounds_it(said: str, meant: str) -> None:
    assert answer_of(said) == meant
