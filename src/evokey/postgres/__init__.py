"""PostgreSQL, as the ledger and the store of keys use it: where a database is, connections to it, and news from it."""
