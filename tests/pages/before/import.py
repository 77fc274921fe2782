"""An index made by Chroma, with vectors of MiniLM."""

import chromadb

from evokey import registry

texts = {"git-commit": "Record changes to the repository: make a commit.", "git-revert": "Reverse an earlier commit."}
client = chromadb.PersistentClient("chroma", chromadb.Settings(anonymized_telemetry=False))
pages = client.create_collection("pages", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)
vectors = registry.build("encoder", "all-MiniLM-L6-v2").documents(list(texts.values()))
pages.add(ids=list(texts), documents=list(texts.values()), embeddings=vectors)
