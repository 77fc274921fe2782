"""evokey beside a SQL query: PostgreSQL's full-text search and pgvector, fused by reciprocal ranks in one statement.

python examples/beside/postgres.py postgresql://localhost/db "how do I undo a commit?"

CREATE TABLE pages (id text PRIMARY KEY, team text NOT NULL, title text, body text, embedding vector(256),
                    words tsvector GENERATED ALWAYS AS (to_tsvector('english', title || ' ' || body)) STORED);
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

import evokey
from evokey.encoders.wordllama import WordLlamaEncoder

FOUND = """
WITH asked AS (SELECT replace(plainto_tsquery('english', %(query)s)::text, '&', '|')::tsquery AS terms),
by_words AS (SELECT id, rank() OVER (ORDER BY ts_rank_cd(words, terms) DESC, id) AS place FROM pages, asked
             WHERE words @@ terms AND {rights} ORDER BY place LIMIT %(k)s),
by_meaning AS (SELECT id, rank() OVER (ORDER BY embedding <=> %(vector)s::vector, id) AS place FROM pages
               WHERE {rights} ORDER BY place LIMIT %(k)s)
SELECT id, coalesce(1.0 / (60 + w.place), 0) + coalesce(1.0 / (60 + m.place), 0) AS score, body, title
FROM by_words w FULL JOIN by_meaning m USING (id) JOIN pages USING (id) ORDER BY score DESC, id LIMIT %(k)s
"""
RIGHTS = "(%(team)s::text IS NULL OR team IN ('all', %(team)s))"


class Pages:
    def __init__(self, database: str, embed: Callable[[str], Sequence[float]]) -> None:
        self._database, self._embed = psycopg.connect(database, autocommit=True), embed

    def search(self, query: str, k: int, team: str | None = None) -> list[dict[str, Any]]:
        vector = str([float(one) for one in self._embed(query)])
        said = {"query": query, "k": k, "team": team, "vector": vector}
        rows = self._database.execute(FOUND.format(rights=RIGHTS), said)
        return [{"id": id, "score": score, "text": body, "title": title} for id, score, body, title in rows]

    def allowed(self, ids: Sequence[str], team: str | None = None) -> list[dict[str, Any]]:
        asked = f"SELECT id, body, title FROM pages WHERE id = ANY(%(ids)s) AND {RIGHTS}"
        rows = self._database.execute(asked, {"ids": list(ids), "team": team})
        return [{"id": id, "text": body, "title": title} for id, body, title in rows]

    def close(self) -> None:
        self._database.close()


if __name__ == "__main__":
    engine = Pages(sys.argv[1], lambda text: WordLlamaEncoder().queries([text])[0])
    with evokey.beside(engine.search, at="kb", allowed=engine.allowed) as layer:
        print(*(f"{hit.score:8.4f}  {hit.id}" for hit in layer.search(sys.argv[2], k=5)), sep="\n")
