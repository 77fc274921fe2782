"""Messages → an answer: models in process and behind HTTP, and wrappers that record, keep and bound what they do."""
