import type { Db } from '../../src/db/client.ts'
import { execute } from '../../src/db/raw.ts'

/** Every new application fails as for a lock that is not given in time, until the returned function is called. */
export async function lockedOut(db: Db): Promise<() => Promise<unknown>> {
  await execute(db, {
    text: `CREATE FUNCTION locked_out() RETURNS trigger LANGUAGE plpgsql
      AS $$ BEGIN RAISE EXCEPTION 'a lock was not given in time' USING ERRCODE = '55P03'; END $$`,
    values: [],
  })
  await execute(db, {
    text: 'CREATE TRIGGER locked_out BEFORE INSERT ON applications EXECUTE FUNCTION locked_out()',
    values: [],
  })
  return () => execute(db, { text: 'DROP FUNCTION locked_out() CASCADE', values: [] })
}
