import type { MutantsOf } from '../mutant.ts'

/** Rules of single fields. */
export default {
  'src/models/token.ts': [
    {
      from: 'if (before !== undefined && user !== undefined && user !== before.user)',
      to: 'if (before === undefined && user !== undefined && user === null)',
      why: 'a token moves to another user (CVE-2024-37905)',
      tests: ['test/models/tokens-and-devices.test.ts'],
    },
    {
      from: 'intent !== undefined && intent !== before.intent)',
      to: 'intent !== undefined && intent === null)',
      why: 'a token gets another intent',
      tests: ['test/models/tokens-and-devices.test.ts'],
    },
    {
      from: 'else if (isSent && Date.parse(expires) <= now.getTime())',
      to: 'else if (isSent && Date.parse(expires) < 0)',
      why: 'a token that has expired already is created',
      tests: ['test/models/tokens-and-devices.test.ts'],
    },
    {
      from: 'if (expiring === false) return { ...values, expires: null }',
      to: 'if (expiring === false) return values',
      why: 'a token that does not expire keeps an end',
      tests: ['test/models/tokens-and-devices.test.ts'],
    },
    {
      from: 'Math.min(defaultDays, tokenMaxDays)',
      to: 'Math.max(defaultDays, tokenMaxDays)',
      why: 'the default is longer than TOKEN_MAX_DAYS',
      tests: ['test/models/tokens-and-devices.test.ts'],
    },
    {
      from: 'key_hash: sha256(secret),',
      to: 'key_hash: Buffer.from(secret),',
      why: 'the secret of a token is stored as it is',
      tests: ['test/rights/escalation-tokens.test.ts'],
    },
    {
      from: 'creator.permissions !== null && values.user !== creator.self',
      to: 'creator.permissions === null && values.user !== creator.self',
      why: 'a token for another user has no ceiling',
      tests: ['test/api/token-ceiling.test.ts'],
    },
    {
      from: "limit: { per: 'user', rows: 100, until: 'expires' },",
      to: "limit: { per: 'user', rows: 101, until: 'expires' },",
      why: 'a user may have more tokens than the database allows',
      tests: ['test/rights/escalation-tokens.test.ts'],
    },
  ],
  'src/models/role.ts': [
    {
      from: "typeof each === 'string' && !known.has(each)",
      to: "typeof each === 'string' && each === ''",
      why: 'a role holds permissions that do not exist',
      tests: ['test/models/models.test.ts', 'test/rights/escalation-people.test.ts'],
    },
    {
      from: 'new Set(sent).size === sent.length',
      to: 'new Set(sent).size <= sent.length',
      why: 'a role holds a permission twice',
      tests: ['test/models/models.test.ts'],
    },
  ],
} satisfies MutantsOf
