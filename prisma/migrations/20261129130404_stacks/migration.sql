-- AlterTable
ALTER TABLE "tokens" ADD COLUMN "stacks" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- AlterTable
ALTER TABLE "runs" DROP COLUMN "notes",
ADD COLUMN "errors" JSONB;

-- CreateTable
CREATE TABLE "stacks" (
    "name" VARCHAR(100) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "run" UUID,
    "run_before" UUID,

    CONSTRAINT "stacks_pkey" PRIMARY KEY ("name")
);

-- CreateTable
CREATE TABLE "stack_members" (
    "model" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "stack" VARCHAR(100) NOT NULL,
    "fields" TEXT[],
    "retain" BOOLEAN NOT NULL DEFAULT false,
    "left_at" TIMESTAMPTZ(3),

    CONSTRAINT "stack_members_pkey" PRIMARY KEY ("model","key")
);

-- CreateIndex
CREATE INDEX "stack_members_stack_idx" ON "stack_members"("stack");

-- AddForeignKey
ALTER TABLE "stack_members" ADD CONSTRAINT "stack_members_stack_fkey" FOREIGN KEY ("stack") REFERENCES "stacks"("name") ON DELETE CASCADE ON UPDATE CASCADE;
