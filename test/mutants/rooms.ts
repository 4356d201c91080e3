import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Mutant, mutantsOf } from './generate.ts'

/** What is mutated, and the test files that are to notice, those that notice most first. All paths are below the project's folder. */
type Room = { readonly sources: readonly string[]; readonly tests: readonly string[] }

const under = (folder: string, ...names: string[]): string[] => names.map((name) => `test/${folder}/${name}.test.ts`)

/** The rooms whose rules keep the promises of the product. */
export const rooms: Readonly<Record<string, Room>> = {
  rights: {
    sources: [
      'src/rights',
      'src/permissions.ts',
      'src/http/access.ts',
      'src/apply/ownership.ts',
      'src/apply/token-key.ts',
    ],
    tests: [
      ...under('rights', 'gains', 'escalation-groups', 'escalation-people', 'escalation-tokens', 'taking-away'),
      ...under('rights', 'names-and-moves', 'last-superuser', 'bound-owners', 'gains-of-owners', 'rights-of-roles'),
      ...under('api', 'token-ceiling', 'tokens-write', 'me', 'transactional-access', 'owners'),
      ...under('rights', 'former-documents', 'names-of-others', 'rights-taken-meanwhile'),
      ...under('http', 'access'),
    ],
  },
  engine: {
    sources: ['src/plan', 'src/apply', 'src/document/evaluate.ts', 'src/document/mask.ts'],
    tests: [
      ...under('apply', 'check', 'states', 'conflicts', 'write', 'sets', 'taken-rows', 'followers'),
      ...under('plan', 'read-again', 'names', 'compile', 'storage', 'references', 'submission'),
      ...under(
        'api',
        'side-effects',
        'stacks',
        'owners',
        'plans',
        'blueprint-tags',
        'history',
        'renames',
        'reset',
        'in-use',
      ),
      ...under('api', 'transactional', 'transactional-secrets', 'transactional-input', 'chosen-keys', 'plans-again'),
      ...under('rights', 'look-ups', 'names-not-viewed', 'blind-plans', 'gains', 'escalation-groups'),
      ...under('document', 'evaluate', 'mask'),
    ],
  },
  ledger: {
    sources: ['src/runs', 'src/submissions', 'src/waits'],
    tests: [
      ...under('runs', 'work', 'ledger', 'life', 'reconcile', 'reconcile-round', 'retention', 'subscribe'),
      ...under('submissions', 'backlog'),
      ...under('simulation', 'simulation', 'twins'),
      ...under('api', 'deliveries', 'causes', 'run-cancel', 'run-apply', 'runs', 'plans', 'history', 'paused'),
      ...under('api', 'transactional-secrets', 'transactional'),
      ...under('waits', 'revision', 'waits'),
      ...under('runs', 'erase', 'reseal', 'tally'),
    ],
  },
}

const root = fileURLToPath(new URL('../..', import.meta.url))

/** All mutants of a room, in an order that the seed gives. A change of other lines of the product leaves it as it is. */
export function mutantsIn({ sources }: Room, seed: string): Mutant[] {
  const files = sources.flatMap((path) =>
    path.endsWith('.ts') ? [path] : readdirSync(join(root, path), { recursive: true }).map((name) => `${path}/${name}`),
  )
  const drawn = files
    .filter((path) => path.endsWith('.ts'))
    .flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8')
      return mutantsOf(file, text).map((mutant) => ({ mutant, by: placeIn(text, mutant) }))
    })
    .map(({ mutant, by }) => ({ mutant, at: hash('sha256', `${seed} ${mutant.file} ${by}`) }))
  return drawn.sort((one, other) => (one.at < other.at ? -1 : 1)).map(({ mutant }) => mutant)
}

/** The mutant's lines as they are and as they become. */
function placeIn(text: string, { start, end, to }: Mutant): string {
  const from = text.lastIndexOf('\n', start) + 1
  const until = text.indexOf('\n', end)
  return `${text.slice(from, until)}\n${text.slice(from, start)}${to}${text.slice(end, until)}`
}
