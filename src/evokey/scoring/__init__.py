"""Rows, questions and their arithmetic: how like a row is to a question, and what becomes of it when keys move. Knows
nothing of where rows are kept."""
