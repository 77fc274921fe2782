"""Feedback from where it is: exports of other tools → lessons, as feedback takes them.

Each tool has one file, which reads its export and says what it found; traces.py attributes scores of traces to
documents. What cannot be attributed to a document is counted by its reason, never guessed (judged.py).
"""
