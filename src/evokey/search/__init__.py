"""Question, keys and what was learned → ranking."""
