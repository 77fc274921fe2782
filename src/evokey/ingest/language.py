"""Which language a text is in, as a code such as "en": by its script, and among Latin scripts by its commonest words.

No library and no model: a text of some sentences is enough. A text that cannot be told has none. Checked on
benchmarks/data/languages.tsv and on real files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

WORD = re.compile(r"[^\W\d_]+")
LOOKED_AT, ENOUGH = 20_000, 3
"""Characters that are read, and common words of a language below which a text is not told to be in it."""
COMMON: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the of and to is that for with this are was it be as on not by from you or have an which",
        "de": "der die das und ist nicht ein eine mit für auf den von zu dem sich auch werden wird oder wie im",
        "fr": "le la les des est et une dans que pour pas qui sur du avec sont plus vous au par ce cette",
        "es": "el los las una que es por con para del se no como más su al lo pero son está este qué cómo",
        "it": "il di che è per una con non sono del della gli le si più come anche nel questo alla dei",
        "pt": "o os uma que não é para com do da em se por mais como dos são no na ao você foi",
        "nl": "de het een en van is dat niet met op voor zijn te aan ook maar wordt door als er bij",
        "sv": "och att det som en är på för med inte av den till ett har kan om de jag men vi",
        "da": "og det at er en på til for med ikke af den der har som et kan vi jeg de om fra",
        "pl": "się nie jest na że do to jak i w z od przez są dla oraz po co ale może być czy",
        "cs": "je se na že to s v do ale jako jsou by pro za který není tak co aby po své nebo",
        "tr": "bir ve bu için ile da de olarak daha çok ne gibi olan var mı mi kadar sonra nasıl değil en",
        "fi": "ja on ei se että oli hän kun ovat mutta myös niin joka tai kuin ole voi sen sitä mitä",
        "hu": "a az és hogy nem is egy ez van meg mint azt csak ha már vagy volt de kell lehet el",
        "ro": "și în de la cu este nu pe un o că din se mai care pentru sunt sau ce al ale prin",
    }.items()
}
SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
    ("uk", re.compile(r"[іїєґІЇЄҐ]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
)
"""Scripts that one language has, or far more often than others; Japanese before Chinese, whose signs it uses."""
PART = 0.05
"""The part of a text's letters from which on a script decides."""


def language_of(text: str) -> str | None:
    sample = text[:LOOKED_AT]
    letters = sum(map(len, WORD.findall(sample)))
    for language, script in SCRIPTS:
        if letters and len(script.findall(sample)) >= PART * letters:
            return language
    words = Counter(word.lower() for word in WORD.findall(sample))
    counts = {language: sum(words[one] for one in common) for language, common in COMMON.items()}
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] >= ENOUGH else None
