"""What a word weighs among the documents, and which English words carry no meaning of their own."""

from __future__ import annotations

import math

from evokey.protocols import Corpus

STOP_WORDS = frozenset(
    (
        "a able about above according across actually after again against all almost along already also although "
        "always am among an and another any anyone anything are aren around as at away be became because become "
        "becomes been before being below besides best better between beyond both but by came can cannot come comes "
        "could couldn did didn do does doesn doing don done down due during each either else enough especially etc "
        "even ever every everyone everything example far few first for found four from further furthermore gave "
        "get gets getting give given gives go goes going gone good got great had hadn has hasn have haven having "
        "he hello hence her here hers herself hey hi him himself his how however i if in including indeed instead "
        "into is isn it its itself just keep know known last later least less let lets like likely ll look looks "
        "lot lots made mainly make makes making many may maybe me might mine more moreover most mostly much must "
        "my myself near nearly need neither never nevertheless next no nobody none nor not nothing now of off "
        "often oh ok okay on once one ones only onto or other others otherwise our ours ourselves out over own per "
        "perhaps please possible pretty put quite rather re really regarding said same saw say says second see "
        "seem seems seen several shall she should shouldn show showed shown shows simply since so some someone "
        "something sometimes soon still such suggest suggests sure take taken takes than thank thanks that the "
        "their theirs them themselves then there thereby therefore these they thing things think this those though "
        "three through throughout thus to together too took toward towards two under unless unlike until up upon "
        "us use used uses using usually various ve very via want wants was wasn way we well went were weren what "
        "whatever when where whereas whether which while who whole whom whose why will with within without won "
        "would wouldn wow yeah yes yet you your yours yourself"
    ).split()
)


def idf(word: str, corpus: Corpus) -> float:
    """How much a word tells documents apart; a word nobody else has weighs most."""
    held = max(corpus.frequency(word), 1)
    return math.log(1 + (max(corpus.documents, held) - held + 0.5) / (held + 0.5))
