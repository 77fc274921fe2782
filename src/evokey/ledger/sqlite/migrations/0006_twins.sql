-- Documents of the same content are found by it: their keys are the same, and are paid for once.
CREATE INDEX documents_by_hash ON documents (hash);
