-- How far audit rows had become histories: all have.
ALTER TABLE "installation" DROP COLUMN "history_filled",
DROP COLUMN "history_fill_until";
