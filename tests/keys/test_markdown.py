"""Headings and code blocks of Markdown, line by line."""

from __future__ import annotations

import pytest

from evokey.keys import markdown


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("# Title", (1, "Title")),
        ("   ### Title ###\r", (3, "Title")),
        ("#\tTitle", (1, "Title")),
        ("###### deep", (6, "deep")),
        ("####### too deep", (0, "")),
        ("    # code", (0, "")),
        ("\t# code", (0, "")),
        ("#hashtag", (0, "")),
        ("# ", (0, "")),
        ("# ##", (0, "")),
        ("words", (0, "")),
        ("", (0, "")),
    ],
)
def test_a_heading_has_a_level_and_a_title(line: str, found: tuple[int, str]) -> None:
    assert markdown.heading(line) == found


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("```python", "", "```"),
        ("  ~~~~", "", "~~~~"),
        ("```code``` in prose", "", ""),
        ("    ```", "", ""),
        ("words", "", ""),
        ("words", "```", "```"),
        ("~~~", "```", "```"),
        ("``", "```", "```"),
        ("``` python", "```", "```"),
        ("````", "```", ""),
        ("  ```  \r", "```", ""),
    ],
)
def test_a_code_block_goes_on_until_a_mark_of_its_kind_and_length(line: str, before: str, after: str) -> None:
    assert markdown.fence(line, before) == after


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("intro\n## part\n# Title\n# Other", "Title"),
        ("```\n# comment\n```\n# Title", "Title"),
        ("```\n# comment", ""),
        ("~~~\n```\n# comment\n~~~\n# Title", "Title"),
        ("", ""),
    ],
)
def test_the_title_is_the_first_top_heading_outside_of_code(text: str, title: str) -> None:
    assert markdown.title(text) == title
