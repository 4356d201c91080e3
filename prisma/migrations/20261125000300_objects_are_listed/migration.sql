-- Applications, providers and flows are listed: one kind of provider, orders by name, and `search`.
-- CreateIndex
CREATE INDEX "providers_kind_pk_idx" ON "providers"("kind", "pk");

-- CreateIndex
CREATE INDEX "flows_name_pk_idx" ON "flows"("name", "pk");

CREATE INDEX "applications_search" ON "applications"
  USING gin ((lower("name" || ' ' || "slug" || ' ' || "group_name")) gin_trgm_ops);
CREATE INDEX "providers_search" ON "providers" USING gin ((lower("name")) gin_trgm_ops);
