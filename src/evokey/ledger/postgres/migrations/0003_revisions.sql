-- Which revision of its encoder each retriever has in an epoch, where one was tuned (JSON: retriever → revision).
ALTER TABLE epochs ADD COLUMN revisions text NOT NULL DEFAULT '{}';
