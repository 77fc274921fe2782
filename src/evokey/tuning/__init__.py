"""Tuning: an encoder trained from the lessons. Off unless asked for; the result is a revision of the encoder."""
