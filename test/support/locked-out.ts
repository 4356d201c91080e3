import type { Db } from '../../src/db/client.ts'
import { execute } from '../../src/db/raw.ts'

const texts = {
  '55P03': 'a lock was not given in time',
  '57014': 'a statement took too long',
  '58030': 'could not read a block',
} as const

/**
 * Every new application fails as for a lock that is not given in time, until the returned function is called.
 *
 * @param code 57014, 58030: as for a statement that takes too long, and for a broken disk, which are tried again at once, and then by
 * another attempt
 */
export async function lockedOut(db: Db, code: keyof typeof texts = '55P03'): Promise<() => Promise<unknown>> {
  await execute(db, {
    text: `CREATE FUNCTION locked_out() RETURNS trigger LANGUAGE plpgsql
      AS $$ BEGIN RAISE EXCEPTION '${texts[code]}' USING ERRCODE = '${code}'; END $$`,
    values: [],
  })
  await execute(db, {
    text: 'CREATE TRIGGER locked_out BEFORE INSERT ON applications EXECUTE FUNCTION locked_out()',
    values: [],
  })
  return () => execute(db, { text: 'DROP FUNCTION locked_out() CASCADE', values: [] })
}
