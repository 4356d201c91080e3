import type { Db } from '../../src/db/client.ts'
import { rows, sql } from './sql.ts'

/** A database that refuses what the engine takes: a broken index, an extension, a lock that is never free. */
export type Breakable = {
  /** No provider of this name can be written from now on. @param code an SQLSTATE */
  breaks(name: string, code: string, text: string): Promise<unknown>
  heals(name: string): Promise<unknown>
}

export async function breakable(db: Db): Promise<Breakable> {
  await rows(db, sql`CREATE TABLE broken (name text PRIMARY KEY, code text NOT NULL, text text NOT NULL)`)
  await rows(
    db,
    sql`CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
      DECLARE b broken;
      BEGIN
        SELECT * INTO b FROM broken WHERE broken.name = NEW.name;
        IF FOUND THEN RAISE EXCEPTION '%', b.text USING ERRCODE = b.code; END IF;
        RETURN NEW;
      END $$`,
  )
  await rows(db, sql`CREATE TRIGGER break BEFORE INSERT OR UPDATE ON providers FOR EACH ROW EXECUTE FUNCTION break()`)
  return {
    breaks: (name, code, text) => rows(db, sql`INSERT INTO broken VALUES (${name}, ${code}, ${text})`),
    heals: (name) => rows(db, sql`DELETE FROM broken WHERE name = ${name}`),
  }
}
