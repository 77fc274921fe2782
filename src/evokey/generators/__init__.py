"""Query and hits → an answer that cites them; prompts are files."""
