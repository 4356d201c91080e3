import { isOutside, outsideStatements } from '../../src/db/migrations.ts'

/** Migrations do not lock large tables for long (docs/adr/0039-large-tables-migrate-outside-of-a-transaction.md). */

const large = [
  ...['users', 'groups', 'group_ancestors', 'memberships', 'row_counts', 'tokens', 'totp_devices', 'user_consents'],
  ...['runs', 'audit_rows'],
]
const onLarge = `(?:"public"\\.)?"?(?:${large.join('|')})"?(?![\\w"])`

/** What reads or writes all rows of a large table, or keeps others from it meanwhile. */
const slow: readonly (readonly [RegExp, string])[] = [
  [
    new RegExp(`\\bCREATE\\s+(?:UNIQUE\\s+)?INDEX\\b(?!\\s+CONCURRENTLY)[^;]*?\\bON\\s+(?:ONLY\\s+)?${onLarge}`, 'i'),
    'builds an index',
  ],
  [new RegExp(`\\b(?:UPDATE|DELETE\\s+FROM)\\s+(?:ONLY\\s+)?${onLarge}`, 'i'), 'writes the rows'],
  [/\bEXECUTE\b(?!\s+(?:FUNCTION|PROCEDURE))/i, 'runs made-up statements'],
  [
    new RegExp(
      `\\bALTER\\s+TABLE\\s+(?:ONLY\\s+)?${onLarge}[^;]*\\bADD\\s+(?:CONSTRAINT|CHECK|FOREIGN|UNIQUE|PRIMARY)\\b(?![^;]*\\bNOT\\s+VALID\\b)`,
      'i',
    ),
    'checks all rows: NOT VALID is missing',
  ],
  [
    new RegExp(
      `\\bALTER\\s+TABLE\\s+(?:ONLY\\s+)?${onLarge}[^;]*\\b(?:SET\\s+NOT\\s+NULL|(?:SET\\s+DATA\\s+)?TYPE\\b|VALIDATE\\b|SET\\s+LOGGED|SET\\s+UNLOGGED)`,
      'i',
    ),
    'reads or writes all rows',
  ],
  [
    new RegExp(
      `\\bALTER\\s+TABLE\\s+(?:ONLY\\s+)?${onLarge}[^;]*\\bADD\\s+COLUMN\\b[^;]*(?:\\bDEFAULT\\s+[^,;]*\\(|SERIAL|\\bGENERATED\\b)`,
      'i',
    ),
    'computes a value for each row',
  ],
  [/\b(?:LOCK\s+TABLE|VACUUM|CLUSTER|REINDEX)\b/i, 'locks a table'],
]

/** `prisma migrate deploy` can run several of these in one migration, but not of the others. */
const createIndex = /^CREATE\s+(UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+IF\s+NOT\s+EXISTS\s+"\w+"\s[^;]*;?$/i

/** A statement that PostgreSQL runs without a long lock, and that may be repeated. */
const repeatable: readonly RegExp[] = [
  createIndex,
  /^DROP\s+INDEX\s+CONCURRENTLY\s+IF\s+EXISTS\s[^;]*;?$/i,
  /^ALTER\s+TABLE\s+"\w+"\s+VALIDATE\s+CONSTRAINT\s[^;]*;?$/i,
  /^DO\s+\$\$(?=[\s\S]*\bLOOP\b)(?=[\s\S]*\bLIMIT\s+\d+\b)(?=[\s\S]*\bCOMMIT\b)[\s\S]*END\s+\$\$;?$/i,
]

/** Leaves out comments, and what stands in texts and in functions, which a migration only makes. */
const statements = (script: string) =>
  script
    .replaceAll(/--[^\n]*/g, '')
    .replaceAll(/\bAS\s+\$\$[\s\S]*?\$\$/gi, "AS ''")
    .replaceAll(/'(?:''|[^'])*'/g, "''")
    .trim()

/** The long locks of one migration. */
export function longLocks(script: string): string[] {
  if (!isOutside(script)) {
    const sql = statements(script)
    return slow.filter(([pattern]) => pattern.test(sql)).map(([, what]) => what)
  }
  const parts = outsideStatements(script).map(statements)
  const allowed = parts.length === 1 ? repeatable : [createIndex]
  return parts.every((sql) => allowed.some((pattern) => pattern.test(sql)))
    ? []
    : ['is no single statement that may be repeated without a long lock, and no list of indexes']
}
