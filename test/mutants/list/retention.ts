import type { MutantsOf } from '../mutant.ts'

const retention = 'test/runs/retention.test.ts'
const erase = 'test/runs/erase.test.ts'
const sealOpen = 'test/runs/seal-open.test.ts'
const reseal = 'test/runs/reseal.test.ts'
const seal = 'test/db/seal.test.ts'

/** What is kept, sealed and erased. */
export default {
  'src/runs/retention.ts': [
    {
      from: "make_interval(days => $1::integer) AND state <> 'queued'",
      to: 'make_interval(days => $1::integer)',
      why: 'a queued run is deleted',
      tests: [retention],
    },
    {
      from: 'WHERE created_at < now() - make_interval(days => $1::integer) AND',
      to: 'WHERE created_at > now() - make_interval(days => $1::integer) AND',
      why: 'young runs are deleted, and old ones stay',
      tests: [retention],
    },
    {
      from: 'if (count < portion) break',
      to: 'if (count <= portion) break',
      why: 'only one portion of old runs is deleted in a round',
      tests: [retention],
    },
    {
      from: 'generated IS NOT NULL AND generated_until < now()',
      to: 'generated IS NOT NULL',
      why: 'generated values are erased before they were read',
      tests: [erase],
    },
    {
      from: 'sealed_key IS NOT NULL AND created_at < now() - make_interval(hours => $1::integer)',
      to: 'sealed_key IS NOT NULL AND created_at < now() - make_interval(hours => 24 * $1::integer)',
      why: 'the secret of a token that was not viewed stays',
      tests: [erase],
    },
    {
      from: 'SELECT submitter_pk, key FROM idempotency_keys WHERE created_at <',
      to: 'SELECT submitter_pk, key FROM idempotency_keys WHERE created_at >',
      why: 'young idempotency keys are deleted',
      tests: ['test/runs/erase.test.ts'],
    },
    {
      from: 'AND idempotency_keys.key = old.key`',
      to: '`',
      why: 'with one expired idempotency key, all of its submitter go',
      tests: ['test/runs/erase.test.ts'],
    },
    {
      from: ')::timestamptz < now()${own.join(',
      to: ')::timestamptz IS NOT NULL${own.join(',
      why: 'an overlap of secrets ends at once',
      tests: ['test/apply/overlap.test.ts'],
    },
    {
      from: "WHERE state = 'queued' AND created_at < now() - make_interval(secs => $1)",
      to: "WHERE state = 'queued'",
      why: 'young runs are cancelled',
      tests: [retention],
    },
    {
      from: 'if (rows.length < portion) return',
      to: 'if (rows.length <= portion) return',
      why: 'of many old runs, the first thousand are cancelled',
      tests: [retention],
    },
  ],
  'src/runs/seal-open.ts': [
    {
      from: '"${model.table}".settings = anew.before->\'settings\'',
      to: 'true',
      why: 'a row that is written meanwhile gets its earlier settings back',
      tests: [sealOpen],
    },
    {
      from: 'if (rows.length < portion) break',
      to: 'break',
      why: 'of many open secrets, the first fifty are sealed',
      tests: [sealOpen],
    },
  ],
  'src/runs/reseal.ts': [
    {
      from: '"${table}"."${column}" = anew.before${cast}`',
      to: 'anew.before IS NOT NULL`',
      why: 'a value that is written meanwhile is overwritten by the one before',
      tests: [reseal],
      survives: 'the test writes beside a rotation, and seldom between its read and its write',
    },
    {
      from: 'if (rows.length < portion) break',
      to: 'break',
      why: 'of many sealed values, the first two hundred are sealed anew',
      tests: [reseal],
    },
    {
      from: 'lost += 1',
      to: '',
      why: 'what no key opens is not counted',
      tests: [reseal],
    },
  ],
  'src/db/seal.ts': [
    {
      from: "createCipheriv('aes-256-gcm', recordKey(current, place), nonce)",
      to: "createCipheriv('aes-256-gcm', current.key, nonce)",
      why: 'all records are sealed under one key',
      tests: [seal],
    },
    {
      from: 'const nonce = randomBytes(12)',
      to: 'const nonce = Buffer.alloc(12)',
      why: 'a nonce is used again',
      tests: [seal],
    },
    {
      from: 'const associated = ({ table, row, column }: SealedPlace) => Buffer.from(JSON.stringify([table, row, column]))',
      to: 'const associated = ({ table, row }: SealedPlace) => Buffer.from(JSON.stringify([table, row]))',
      why: 'a sealed value opens in another column',
      tests: [seal],
    },
    {
      from: 'const associated = ({ table, row, column }: SealedPlace) => Buffer.from(JSON.stringify([table, row, column]))',
      to: 'const associated = ({ table, column }: SealedPlace) => Buffer.from(JSON.stringify([table, column]))',
      why: 'a value that an earlier version sealed opens in another row',
      tests: [seal],
    },
    {
      from: 'masters.find((each) => each.id === id)',
      to: 'masters.find((each) => each.id === id || id)',
      why: 'a value that was sealed under another key is opened with the wrong one',
      tests: [seal],
    },
    {
      from: 'const masters = [current, ...others]',
      to: 'const masters = others.length === 0 ? [current] : others',
      why: 'with SECRET_KEY_PREVIOUS, what is sealed now does not open',
      tests: [seal],
    },
    {
      from: 'isCurrent: (envelope) => envelope.startsWith(prefix)',
      to: "isCurrent: (envelope) => envelope.startsWith('v')",
      why: 'what is sealed under the previous key counts as current',
      tests: [reseal, seal],
    },
  ],
  'src/db/sealed-check.ts': [
    {
      from: '  if (why !== null)',
      to: "  if (why === '')",
      why: 'the service starts under another SECRET_KEY',
      tests: [reseal],
    },
    {
      from: 'if (sample !== null && !keyring.isOfCurrentKey(sample.envelope)) return',
      to: '',
      why: 'the check value is sealed anew before the rest is',
      tests: [reseal],
    },
  ],
} satisfies MutantsOf
