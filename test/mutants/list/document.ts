import type { MutantsOf } from '../mutant.ts'

const states = 'test/apply/states.test.ts'
const compile = 'test/plan/compile.test.ts'
const forms = 'test/apply/sent-forms.test.ts'

/** What a document says. */
export default {
  'src/plan/compile.ts': [
    {
      from: 'if (targets.has(entry.id))',
      to: 'if (targets.has(entry.model))',
      why: 'two entries have one id',
      tests: [compile],
    },
    {
      from: "entry.state === 'absent' ? null : model.target",
      to: 'model.target',
      why: 'an entry refers to one that is deleted',
      tests: [states, compile],
    },
    {
      from: "if (storage === undefined || (storage.in === 'column' && !storage.json)) continue",
      to: 'if (storage === undefined || storage) continue',
      why: 'a row is looked up by a field that is no column',
      tests: [compile],
    },
    {
      from: 'if (field.secret && value === masked) {',
      to: 'if (field.secret && value === null) {',
      why: 'the mask of a secret is stored as the secret',
      tests: ['test/api/transactional-secrets.test.ts', 'test/document/mask.test.ts', 'test/plan/compile.test.ts'],
    },
    {
      from: '} else if (!model.readOnly.includes(name)) {',
      to: '} else if (model.readOnly.includes(name)) {',
      why: 'unknown fields are ignored',
      tests: [compile],
    },
    {
      from: 'if (registry.targets.get(found)?.table !== target.table)',
      to: 'if (registry.targets.get(found)?.table === undefined)',
      why: 'a reference takes the row of another model',
      tests: [compile, states],
    },
    {
      from: 'return generate !== undefined && isGenerate(sent) ? generateNew :',
      to: 'return generate === undefined && isGenerate(sent) ? generateNew :',
      why: '{"generate": true} is stored as it is',
      tests: [forms],
    },
    {
      from: 'if (initial !== undefined) return initial',
      to: '',
      why: 'null does not put a field back to its default',
      tests: [forms],
    },
  ],
  'src/plan/secret-forms.ts': [
    {
      from: 'return row === undefined ? [[name, value.value]] : []',
      to: 'return [[name, value.value]]',
      why: 'a secret for a new object replaces one that was rotated',
      tests: [forms],
    },
  ],
  'src/document/mask.ts': [
    {
      from: 'return { create: value.create === null ? null : masked }',
      to: 'return value',
      why: 'a secret for a new object is shown',
      tests: ['test/document/mask.test.ts'],
    },
  ],
  'src/cli/import/adapt.ts': [
    {
      from: 'return type === undefined || type === forLogins ? undefined',
      to: 'return uri !== undefined ? undefined',
      why: 'an address for logouts takes logins',
      tests: ['test/cli/import-family.test.ts'],
    },
  ],
  'src/cli/import/references.ts': [
    {
      from: 'return isKey(inner, target.key) ? rowOf(target.table, inner, known) : inner',
      to: 'return inner',
      why: 'a key of another installation is taken for one of this one',
      tests: ['test/cli/import-keys.test.ts'],
    },
  ],
  'src/plan/submission.ts': [
    {
      from: 'expectedKeys[providerId] = key',
      to: 'expectedKeys[appId] = key',
      why: 'the key of a provider is compared with that of the application',
      tests: ['test/plan/submission.test.ts'],
    },
    {
      from: 'key !== null && !isNameOf(key, sent.provider))',
      to: 'key !== null && isNameOf(key, sent.provider))',
      why: 'a submission names another provider than its own',
      tests: ['test/api/transactional-input.test.ts', 'test/api/transactional.test.ts'],
    },
    {
      from: 'if (value !== undefined && value !== name)',
      to: 'if (value !== undefined && value === null)',
      why: 'a provider says another kind than provider_model',
      tests: ['test/api/transactional-input.test.ts', 'test/api/transactional.test.ts'],
    },
    {
      from: 'if (!fields.some((field) => field === name))',
      to: 'if (fields.some((field) => field === name) && !body)',
      why: 'unknown fields of a submission are ignored',
      tests: ['test/api/transactional-input.test.ts', 'test/api/transactional-malformed.test.ts'],
    },
  ],
} satisfies MutantsOf
