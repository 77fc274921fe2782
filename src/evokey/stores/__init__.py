"""Where base rows live and are searched. Stores know documents by number, and nothing of learning."""
