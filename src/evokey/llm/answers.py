"""What a model meant to say: its answer without thinking aloud, fences and pleasantries."""

from __future__ import annotations

import re

THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
CLOSED = re.compile(r"\A.*</(think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
"""Some templates open the thought in the prompt: the answer then only closes it."""
FENCE = re.compile(r"\A```[^\n`]*\n(.*?)\n?```\Z", re.DOTALL)
GREETING = re.compile(
    r"\A(?:(?:sure|certainly|of course|absolutely|okay|ok|great)(?:[.!]|, (?:here|i|let)\b[^\n.!:]{0,80}[.!:])\s+)?"
    r"(?:here(?:'s|’s| is| are)\b[^\n]{0,120}:\s*\n)?",
    re.IGNORECASE,
)


def answer_of(text: str) -> str:
    text = CLOSED.sub("", THOUGHT.sub("", text)).strip()
    rest = GREETING.sub("", text, count=1).strip()
    text = rest or text
    fenced = FENCE.match(text)
    return fenced.group(1).strip() if fenced and "```" not in fenced.group(1) else text
