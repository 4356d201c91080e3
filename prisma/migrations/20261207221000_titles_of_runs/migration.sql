-- The titles of runs, for `search` (docs/adr/0085-titles-of-runs-stand-once.md). A trigger keeps them, so that runs of an
-- earlier version are found, too. A title that was used lately is only looked up.
CREATE TABLE "run_titles" (
    "pk" UUID NOT NULL DEFAULT gen_random_uuid(),
    "title" TEXT NOT NULL,
    "used_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "run_titles_pkey" PRIMARY KEY ("pk")
);
CREATE INDEX "run_titles_title_idx" ON "run_titles"("title");
CREATE INDEX "run_titles_used_at_idx" ON "run_titles"("used_at");
CREATE INDEX "run_titles_search" ON "run_titles" USING gin (lower("title") gin_trgm_ops);

-- No transaction waits for another that records the same title: where one does so now, the title stands twice for a while.
-- With the rights of the owner: the service's login gets its own on this table only after all migrations, and records runs
-- meanwhile.
CREATE FUNCTION "keep_run_title"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM public."run_titles" WHERE "title" = NEW."title" AND "used_at" > now() - interval '1 day') THEN
    UPDATE public."run_titles" SET "used_at" = now() WHERE "pk" = (
      SELECT "pk" FROM public."run_titles" WHERE "title" = NEW."title" LIMIT 1 FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
      INSERT INTO public."run_titles" ("title") VALUES (NEW."title");
    END IF;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "runs_keep_titles" AFTER INSERT ON "runs" FOR EACH ROW EXECUTE FUNCTION "keep_run_title"();
