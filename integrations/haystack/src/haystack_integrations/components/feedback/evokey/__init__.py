"""Components of Haystack that turn verdicts of users into lessons of evokey."""

from haystack_integrations.components.feedback.evokey.feedback import EvokeyRater, EvokeyTeacher

__all__ = ["EvokeyRater", "EvokeyTeacher"]
