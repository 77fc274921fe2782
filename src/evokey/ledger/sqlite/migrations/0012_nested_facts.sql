-- Fields inside of objects are facts, too: {"author": {"name": "Ada"}} is the field author.name. Documents that have such.
DELETE FROM facts WHERE number IN (SELECT number FROM documents WHERE metadata LIKE '{%{%');
WITH RECURSIVE walk(number, field, type, value, inside) AS (
  SELECT d.number, j.key, j.type, j.value, 0 FROM documents d, json_each(d.metadata) j WHERE d.metadata LIKE '{%{%'
  UNION ALL
  SELECT w.number, CASE w.type WHEN 'array' THEN w.field ELSE w.field || '.' || j.key END, j.type, j.value,
    w.type = 'array'
  FROM walk w, json_each(w.value) j WHERE w.type = 'object' OR (w.type = 'array' AND NOT w.inside)
)
INSERT INTO facts SELECT number, field, value FROM walk WHERE type NOT IN ('object', 'array', 'null');
