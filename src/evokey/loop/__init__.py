"""Expand, search, answer, verify, note a lesson; and the background learner that does it unasked."""
