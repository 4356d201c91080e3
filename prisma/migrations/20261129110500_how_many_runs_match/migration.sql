-- PostgreSQL then knows how many runs have an owner, or a word in their title. No write pays for it: it is sampled as a table is
-- analysed.
CREATE STATISTICS "runs_titles" ON (lower("title")) FROM "runs";
CREATE STATISTICS "runs_owners" ON ("options"->>'owner') FROM "runs";
ANALYZE "runs";
