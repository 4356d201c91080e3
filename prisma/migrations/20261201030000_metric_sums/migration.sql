-- What all processes have counted of runs since the installation, for the metrics.
CREATE TABLE "metric_sums" (
    "series" VARCHAR(200) NOT NULL,
    "value" DOUBLE PRECISION NOT NULL,

    CONSTRAINT "metric_sums_pkey" PRIMARY KEY ("series")
);
