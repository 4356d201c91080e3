import { randomUUID } from 'node:crypto'
import { type Answer, applyPath, type Installation, type Made, named } from '../../support/kit.ts'
import type { Ask } from './answers.ts'
import type { Row } from './matrix.ts'
import { type Prepare, prefix } from './trial.ts'

/** Requests about rows of owners, and documents that look rows up. */

const blueprints = '/api/v3/blueprints/'
const fresh = () => `${prefix}-${randomUUID().slice(0, 13)}`
const fail = (what: string): never => {
  throw new Error(`it is not said what ${what} is`)
}

/** An application and its provider of the same name, under a label. */
async function applied({ admin }: Installation, owner: string, name = fresh()): Promise<string> {
  const answer = await admin.submit('rac', name, { owner })
  if (answer.status !== 200) throw new Error(answer.text)
  return name
}

/** GET of an object by its name, and of lists. */
export const readOf =
  (name: string): Prepare =>
  async ({ operation, whose }) => {
    const [method = '', path = ''] = operation.split(' ')
    const url = (each: string) => path.replace(/:\w+/, each)
    return { method, url: url(whose === 'not there' ? 'nothing' : name), missing: url('nothing-at-all') }
  }

export const appliedOf =
  (there: Installation): Prepare =>
  async ({ whose }) => {
    const isNew = whose.startsWith('new')
    const name = isNew ? fresh() : await applied(there, 'team-one')
    const label = { takeover: 'team-two', released: undefined, 'new without a label': undefined }[whose]
    const owner = whose in { takeover: 1, released: 1, 'new without a label': 1 } ? label : 'team-one'
    const headers = { ...(owner !== undefined && { 'gatewright-owner': owner }), 'gatewright-allow': 'takeover' }
    return { method: 'PUT', url: applyPath, headers, body: await named('rac', name) }
  }

export const deletedOf =
  (there: Installation): Prepare =>
  async ({ member }) => {
    const query = member === 'with_provider' ? '?with_provider=true' : ''
    const url = `/api/v3/core/applications/${await applied(there, 'team-one')}/${query}`
    return { method: 'DELETE', url, headers: { 'gatewright-owner': 'team-one' } }
  }

const document = (entries: readonly object[], more: object = {}) => ({
  ...{ version: 1, metadata: { name: prefix }, ...more },
  entries,
})

export const blueprintOf =
  (there: Installation): Prepare =>
  async ({ whose }) => {
    const { admin, db } = there
    if (whose === 'left over') {
      // All that the stack has: it is there again for each actor.
      const name = await applied(there, 'team-four', `${prefix}-left`)
      const stack = { 'gatewright-owner': 'team-four', 'gatewright-stack': prefix }
      const members = [
        { model: 'service_core.application', identifiers: { slug: name } },
        { model: 'service_providers_rac.racprovider', identifiers: { name } },
      ]
      const joined = await admin.put(blueprints, document(members), { headers: stack })
      if (joined.status !== 200) throw new Error(joined.text)
      const none = { model: 'service_core.application', identifiers: { slug: 'none' }, state: 'absent' }
      const headers = { ...stack, 'gatewright-allow': 'deletes=2' }
      return { method: 'PUT', url: blueprints, headers, body: document([none]) }
    }
    const [slug, name] = [await applied(there, 'team-two'), fresh()]
    const scim = { model: 'service_providers_scim.scimprovider', identifiers: { name } }
    const attrs = { url: 'https://example.com/scim', token: 'a token of many letters' }
    const made = await admin.put(blueprints, document([{ ...scim, attrs }], { owner: 'team-one' }))
    if (made.status !== 200) throw new Error(made.text)
    const { pk } = await db.provider.findUniqueOrThrow({ where: { name } })
    const entry = { model: 'service_core.application', identifiers: { slug }, attrs: { backchannel_providers: [pk] } }
    const headers = { 'gatewright-allow': 'takeover' }
    return { method: 'PUT', url: blueprints, headers, body: document([entry], { owner: 'team-two' }) }
  }

/** What finds a row of each model, by the row of the table. @returns a value that a row has */
export type Targets = Readonly<Record<string, readonly [model: string, field: string, value: string]>>

export async function targets(there: Installation, user: Made): Promise<Targets> {
  const name = await applied(there, 'team-one')
  const identifier = `looked-up-${randomUUID()}`
  await there.make.token(user.pk, { identifier })
  return {
    user: ['service_core.user', 'username', user.username],
    group: ['service_core.group', 'name', (await there.make.group()).name],
    role: ['service_rbac.role', 'name', (await there.make.role([])).name],
    token: ['service_core.token', 'identifier', identifier],
    application: ['service_core.application', 'slug', name],
    provider: ['service_providers_rac.racprovider', 'name', name],
  }
}

const ways: Readonly<Record<string, (find: string) => string>> = {
  '!Find': (find) => `attrs: { attributes: { guess: ${find} } }`,
  '!Format': (find) => `attrs: { attributes: { guess: !Format ["%s", ${find}] } }`,
  '!If': (find) => `attrs: { attributes: { guess: !If [${find}, 1, 2] } }`,
  conditions: (find) => `conditions: [${find}]`,
  '!Condition': (find) => `attrs: { attributes: { guess: !Condition [NOR, ${find}] } }`,
}

export const lookedUp =
  (known: Targets): Prepare =>
  async ({ whose, value }, { name: who }) => {
    const [, article, what = ''] = /^(a|no such) (\w+)$/.exec(whose) ?? fail(whose)
    const [model, field, name] = known[what] ?? fail(whose)
    const group = fresh()
    const guess = (looked: string) =>
      `version: 1\nmetadata: { name: ${prefix} }\nentries:\n  - { model: service_core.group, identifiers: { name: ${group} }, ` +
      `${(ways[value] ?? fail(value))(`!Find [${model}, { ${field}: "${looked}" }]`)} }\n`
    const [right, wrong] = [guess(name), guess(`not-${randomUUID()}`)]
    const [body, otherGuess] = article === 'a' ? [right, wrong] : [wrong, right]
    return {
      method: 'PUT',
      url: blueprints,
      headers: { 'content-type': 'application/yaml' },
      body,
      ...(who !== 'but one: add_group' && { otherGuess }),
    }
  }

const secretGuess = 'a secret of many letters that is guessed'

/** The right guess of a value, in a plan or in an apply. */
export const guessed =
  ({ admin, db, make }: Installation): Prepare =>
  async ({ whose, member }) => {
    const url = whose === 'planned' ? `${blueprints}?dry_run=true` : blueprints
    const headers = { 'gatewright-allow': 'takeover' }
    const ask = (entry: object): Ask => ({ method: 'PUT', url, headers, body: document([entry]), shows: toldOf })
    if (member === 'email') {
      const { pk, username } = await make.user()
      const email = `${username}@example.com`
      await db.user.update({ where: { pk }, data: { email } })
      return ask({ model: 'service_core.user', identifiers: { username }, attrs: { email } })
    }
    const name = fresh()
    const made = await admin.submit('oauth2', name, { provider: { client_secret: secretGuess } })
    if (made.status !== 200) throw new Error(made.text)
    const model = 'service_providers_oauth2.oauth2provider'
    return ask({ model, identifiers: { name }, attrs: { client_secret: secretGuess } })
  }

/** What an answer says about a guess. */
function toldOf({ text }: Answer): string {
  if (/ unchanged"/.test(text)) return 'shown'
  return text.includes('client_secret changed') || text.includes('email (not shown) ->') ? 'hidden' : text
}

/** A token of a user, with what only those who may view users may know. */
export const tokenOf =
  ({ db, make }: Installation): Prepare =>
  async ({ operation, member }: Row) => {
    const { pk } = await make.user()
    await db.user.update({ where: { pk }, data: { name: 'The owner' } })
    const identifier = fresh()
    await make.token(pk, { identifier })
    const [method = ''] = operation.split(' ')
    const url = (name: string) => `/api/v3/core/tokens/${name}/`
    return {
      ...{ method, url: url(identifier), missing: url(randomUUID()) },
      ...(method === 'PATCH' && { body: { [member]: 'changed' } }),
      shows: ({ text }) => (text.includes('The owner') ? 'full' : text.includes(`"user":${pk}`) ? 'key' : text),
    }
  }
