import type { MutantsOf } from '../mutant.ts'

const earlier = 'test/plan/read-again.test.ts'
const states = 'test/apply/states.test.ts'
const storage = 'test/plan/storage.test.ts'
const references = 'test/plan/references.test.ts'
const renames = 'test/api/renames.test.ts'

/** How rows are read, locked and written. */
export default {
  'src/plan/snapshot-sql.ts': [
    {
      from: "way.map((name) => same.get(name)).join(' AND ')",
      to: "way.map((name) => same.get(name)).join(' OR ')",
      why: 'a row is found by one of the two fields that name it together',
      tests: ['test/apply/devices-and-consents.test.ts'],
    },
    {
      from: "WHERE ${where.join(' OR ')} LIMIT 2`",
      to: "WHERE ${where.join(' OR ')} LIMIT 1`",
      why: 'identifiers that find two rows find the first',
      tests: [states],
    },
    {
      from: 'WHERE found IS NULL${isUnfit}`',
      to: 'WHERE found IS NULL`',
      why: 'a flow of another designation fits',
      tests: [references],
    },
    {
      from: 'holder(`compared_name(${value}) = compared_name(k)`)',
      to: 'holder(`${value} = k`)',
      why: 'a name in another case of letters is free',
      tests: [storage, 'test/models/names.test.ts', renames],
    },
    {
      from: 'CASE WHEN cardinality(s.rows) = 0 THEN',
      to: 'CASE WHEN cardinality(s.rows) >= 0 THEN',
      why: 'an update uses up a key of the sequence',
      tests: ['test/apply/states.test.ts'],
    },
  ],
  'src/plan/statements.ts': [
    {
      from: 'AND (l.${own}, l.${other}) NOT IN (SELECT',
      to: 'AND (l.${own}, l.${other}) IN (SELECT',
      why: 'removed links stay',
      tests: [storage],
    },
    {
      from: 'unnest(v.removed) k WHERE l.${own} = v.own AND l.${other} = k`',
      to: 'unnest(v.removed) k WHERE l.${own} = v.own AND l.${other} <> k`',
      why: 'a list that is edited loses the items that are not named',
      tests: ['test/api/list-edits.test.ts'],
    },
    {
      from: 'WHERE NOT EXISTS (SELECT FROM ${table} l WHERE l.${own} = v.own AND l.${other} = k)`',
      to: 'WHERE EXISTS (SELECT FROM ${table} l WHERE l.${own} = v.own)`',
      why: 'added links are not written',
      tests: [storage],
    },
    {
      from: '= ANY($1::${model.key}[]) AND field = ANY($2::text[])`',
      to: '= ANY($1::${model.key}[]) AND $2::text[] IS NOT NULL`',
      why: 'the references of other fields are lost when one changes',
      tests: [storage],
    },
  ],
  'src/apply/execute.ts': [
    {
      from: 'if (steps.some(decidesRights)) lockRights(tx)',
      to: '',
      why: 'changes of rights are not one after the other',
      tests: ['test/rights/last-superuser.test.ts'],
    },
    {
      from: 'const keys = [...new Set(steps.flatMap(locksOf))].sort()',
      to: 'const keys = [...new Set(steps.flatMap(locksOf))]',
      why: 'documents that write the same names in another order deadlock',
      tests: ['test/apply/locks.test.ts'],
    },
    {
      from: 'if (count <= most) return',
      to: 'if (count >= 0) return',
      why: 'a document of many names uses up the locks of PostgreSQL',
      tests: ['test/apply/many-errors.test.ts', 'test/apply/sets.test.ts', 'test/api/sets.test.ts'],
      survives: 'no document has as many names as the locks of the test server',
    },
    {
      from: 'const before = was === undefined ? [] : [[was]]',
      to: 'const before: unknown[][] = []; void was',
      why: 'two renames of one row do not wait for each other',
      tests: ['test/apply/locks.test.ts'],
    },
    {
      from: "effect.action === 'delete' ? new Refusal(objections, error) :",
      to: "effect.action !== 'delete' ? new Refusal(objections, error) :",
      why: 'a name that was taken meanwhile is not tried again',
      tests: ['test/apply/write.test.ts'],
    },
    {
      from: 'changed.some(isNaming(model)), explain)',
      to: 'false, explain)',
      why: 'two entries that swap names lose their order',
      tests: ['test/apply/sets.test.ts', storage],
      survives: 'PostgreSQL happens to write the rows of a list in its order',
    },
  ],
  'src/apply/writes.ts': [
    {
      from: 'query: (row, statement) => {',
      to: 'query: (row, statement) => { if (tx) return tx.query(row, statement)',
      why: 'an entry does not read what an earlier one wrote',
      tests: [earlier],
    },
    {
      from: '|| !batch.keys.isDisjointFrom(named)',
      to: '',
      why: 'a row is written before the one that it refers to',
      tests: ['test/apply/states.test.ts'],
    },
    {
      from: 'if (this.#rows >= maxRows) this.flush()',
      to: '',
      why: 'any number of writes is collected',
      tests: ['test/apply/sets.test.ts'],
      survives: 'a limit of memory: the largest document has 10 000 rows',
    },
  ],
} satisfies MutantsOf
