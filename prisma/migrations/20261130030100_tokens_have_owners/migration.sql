-- The owners to which a token is bound, as it was created: its ceiling has what that leaves.
ALTER TABLE "tokens" ADD COLUMN "owners" TEXT[] DEFAULT ARRAY[]::TEXT[];
