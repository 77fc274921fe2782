"""One module for each kind of file that is one document. Each has `read`: bytes → Content; it may raise anything.

The readers of HTML, PDF, DOCX, reStructuredText, notebooks and source code run in a process of their own
(evokey/ingest/child.py), with bounds on time and memory.
"""
