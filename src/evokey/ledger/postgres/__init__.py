"""The ledger in a schema of a PostgreSQL database: all that PostgreSQL alone knows, and its migrations."""
