-- The titles of runs, each once, for `search` (docs/adr/0085-titles-of-runs-stand-once.md). A trigger keeps them, so that
-- runs of an earlier version are found, too. A title that was used lately is only looked up.
CREATE TABLE "run_titles" (
    "title" TEXT NOT NULL,
    "used_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "run_titles_pkey" PRIMARY KEY ("title")
);
CREATE INDEX "run_titles_used_at_idx" ON "run_titles"("used_at");
CREATE INDEX "run_titles_search" ON "run_titles" USING gin (lower("title") gin_trgm_ops);

CREATE FUNCTION "keep_run_title"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM "run_titles" WHERE "title" = NEW."title" AND "used_at" > now() - interval '1 day') THEN
    INSERT INTO "run_titles" ("title") VALUES (NEW."title") ON CONFLICT ("title") DO UPDATE SET "used_at" = excluded."used_at";
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "runs_keep_titles" AFTER INSERT ON "runs" FOR EACH ROW EXECUTE FUNCTION "keep_run_title"();
