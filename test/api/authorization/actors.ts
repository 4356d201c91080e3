import { permissionNames } from '../../../src/models/registry.ts'
import { ownerOf, permissionOf, rightsOf } from '../../../src/permissions.ts'
import { newSecret, tokenIntents } from '../../../src/token-secret.ts'
import { type Asker, askAs, type Installation, type Made, testKeys } from '../../support/kit.ts'

/** A caller with a token, who may impersonate another user. */
export type Actor = {
  /** The name in the table, with the missing permission for `but one`. */
  readonly name: string
  readonly token: string | null
  /** The effective user, or the owner of a token that is refused. */
  readonly self: Made
  readonly asker: Asker
  readonly headers: Readonly<Record<string, string>>
}

export type Cast = {
  /** The actors of a column, where these permissions are needed. */
  actors(column: string, needs: readonly string[]): Promise<readonly Actor[]>
  readonly columns: readonly string[]
  /** More columns, of rows that have an owner. */
  readonly ownerColumns: readonly string[]
  /** The names of the unauthenticated actors. */
  readonly unauthenticated: readonly string[]
}

const dayMs = 86_400_000

/** The owner for whose rows the actors of the owner columns hold their permissions. */
const otherOwner = 'team-three'

/** Creates actors on first use; actors with the same permissions are one user. */
export function castFor({ app, make, engine }: Installation): Cast {
  const all: readonly string[] = permissionNames(engine.registry)
  const people = new Map<string, Promise<Made>>()
  const once = (key: string, made: () => Promise<Made>): Promise<Made> => {
    const there = people.get(key) ?? made()
    people.set(key, there)
    return there
  }
  const holder = (who: string, permissions: readonly string[]) =>
    once(`${who} ${[...permissions].sort()}`, async () => {
      const [bound, others] = [
        permissions.filter((each) => ownerOf(each) !== null),
        permissions.filter((each) => ownerOf(each) === null),
      ]
      const roles = [...Map.groupBy(bound, ownerOf)].map(([owner, rights]) =>
        make.role(rights.map(permissionOf), [owner ?? '']),
      )
      const keys = (await Promise.all(roles)).map(({ pk }) => pk)
      const groups = keys.length === 0 ? [] : [(await make.group({ roles: keys })).pk]
      return make.user({ permissions: others, groups })
    })
  const superuser = () => once('super', () => make.user({ superuser: true }))
  const support = () => holder('support', ['impersonate'])

  const actor = (name: string, real: Pick<Made, 'token'>, self: Made, token: string | null = real.token): Actor => ({
    ...{ name, token, self, asker: askAs(app, token) },
    headers: self === real ? {} : { 'impersonate-user': self.username },
  })

  const secrets = new Map<string, Promise<string | null>>()

  /** Their owner is a superuser, so that only the token can be the reason for a refusal. */
  const unauthenticated = async (name: string, tokenOf: (owner: Made) => Promise<string | null>): Promise<Actor> => {
    const owner = await once(name, () => make.user({ superuser: true, isActive: name !== 'inactive owner' }))
    const token = secrets.get(name) ?? tokenOf(owner)
    secrets.set(name, token)
    return actor(name, owner, owner, await token)
  }
  /** A token that another user made: it carries what both its owner and its ceiling have. */
  const limited = async (
    name: string,
    owner: Promise<Made>,
    ceiling: readonly string[],
    as: Promise<Made> = owner,
  ): Promise<Actor> => {
    const key = `${name} ${[...ceiling].sort()}`
    const token = secrets.get(key) ?? owner.then(({ pk }) => make.token(pk, { ceiling }))
    secrets.set(key, token)
    return actor(name, await owner, await as, await token)
  }
  const expired = { expires: new Date(Date.now() - 1_000) }
  const wrong = tokenIntents.filter((intent) => intent !== 'api')
  const tokens: Record<string, (owner: Made) => Promise<string | null>> = {
    'no token': async () => null,
    'malformed token': async ({ token }) => `${token} ${token}`,
    'unknown token': async () => newSecret('api', testKeys),
    'expired token': ({ pk }) => make.token(pk, expired),
    'inactive owner': async ({ token }) => token,
    ...Object.fromEntries(
      wrong.map((intent) => [
        intent,
        ({ pk }: Made) => make.token(pk, { intent, expires: new Date(Date.now() + dayMs) }),
      ]),
    ),
  }

  const columns: Record<string, (needs: readonly string[]) => Promise<Actor[]>> = {
    unauthenticated: async () =>
      Promise.all(Object.entries(tokens).map(([name, tokenOf]) => unauthenticated(name, tokenOf))),
    plain: async () => [await alone('plain', holder('plain', []))],
    exact: async (needs) => [await alone('exact', holder('exact', needs))],
    'but one': (needs) =>
      Promise.all(
        needs.map((lack) =>
          alone(
            `but one: ${lack}`,
            holder(
              'but one',
              all.filter((permission) => permission !== permissionOf(lack)),
            ),
          ),
        ),
      ),
    every: async () => [await alone('every', holder('every', all))],
    super: async () => [await alone('super', superuser())],
    'super as plain': async () => [actor('super as plain', await superuser(), await holder('plain', []))],
    'super as exact': async (needs) => [actor('super as exact', await superuser(), await holder('exact', needs))],
    'support as exact': async (needs) => [actor('support as exact', await support(), await holder('exact', needs))],
    'deputy as exact': async (needs) => [
      actor('deputy as exact', await holder('deputy', ['impersonate', ...needs]), await holder('exact', needs)),
    ],
    'support as super': async () => [actor('support as super', await support(), await superuser())],
    'plain as exact': async (needs) => [
      actor('plain as exact', await holder('plain', []), await holder('exact', needs)),
    ],
    'ceiling none': async () => [await limited('ceiling none', superuser(), [])],
    'ceiling exact': async (needs) => [await limited('ceiling exact', superuser(), needs)],
    'plain ceiling every': async () => [await limited('plain ceiling every', holder('plain', []), all)],
    'ceiling as exact': async (needs) => [
      await limited('ceiling as exact', superuser(), ['impersonate'], holder('exact', needs)),
    ],
  }
  const others = (needs: readonly string[]) =>
    needs
      .flatMap((need) => rightsOf([permissionOf(need)], [otherOwner]))
      .filter((each, at, all) => all.indexOf(each) === at)
  const ofOwners: typeof columns = {
    'other owner': async (needs) => [await alone('other owner', holder('exact', others(needs)))],
    'super as other owner': async (needs) => [
      actor('super as other owner', await superuser(), await holder('exact', others(needs))),
    ],
    'ceiling other owner': async () => [await limited('ceiling other owner', superuser(), rightsOf(all, [otherOwner]))],
  }
  const alone = async (name: string, made: Promise<Made>) => actor(name, await made, await made)
  return {
    actors: (column, needs) =>
      (columns[column] ?? ofOwners[column])?.(needs) ?? Promise.reject(new Error(`there is no actor ${column}`)),
    columns: Object.keys(columns),
    ownerColumns: Object.keys(ofOwners),
    unauthenticated: Object.keys(tokens),
  }
}
