"""The ledger in one SQLite file in WAL mode: all that SQLite alone knows, and its migrations."""
