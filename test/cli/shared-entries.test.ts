import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { adminToken, exited, folderOf, freshFolder, listening, named } from '../support/kit.ts'

/** Equal entries in two files of one call are one entry; those that contradict each other are refused with both places. */

const there = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: freshFolder() }, 'src/cli/gatewright.ts')

const document = (...entries: string[]) => `version: 1\nentries:\n${entries.map((entry) => `  - ${entry}\n`).join('')}`
const group = (name: string, more = '') => `{ model: service_core.group, identifiers: { name: ${name} }${more} }`

async function parentOf(name: string): Promise<string | undefined> {
  const found = await there.on.db.group.findFirst({ where: { name }, select: { parent: { select: { name: true } } } })
  return found?.parent?.name
}

describe('equal entries of two files', () => {
  test('are one, whatever the order of their members, with and without an id, and with !KeyOf in both files', async () => {
    const members = '[{ model: service_core.user, identifiers: { username: se-u1 } }'.slice(1)
    const folder = folderOf({
      '0.yaml': document(members, group('se-other')),
      'a.yaml': document(
        group('se-shared', ', attrs: { attributes: { a: 1, b: [1, 2] }, users: [se-u1, admin] }'),
        group('se-a', ', attrs: { parent: se-shared }'),
      ),
      'b.yaml': document(
        '{ id: own, state: present, attrs: { users: [admin, se-u1], attributes: { b: [1, 2], a: 1 } }, identifiers: { name: se-shared }, model: service_core.group }',
        group('se-b', ', attrs: { parent: !KeyOf own }'),
      ),
      'c.json': JSON.stringify({
        version: 1,
        entries: [
          {
            model: 'service_core.group',
            id: 'other',
            conditions: null,
            identifiers: { name: 'se-shared' },
            attrs: { users: ['se-u1', 'admin'], attributes: { a: 1, b: [1, 2] } },
          },
        ],
      }),
      'd.yaml': document(
        group('se-other', ', id: own, state: present, attrs: {}'),
        group('se-d', ', attrs: { parent: !KeyOf own }'),
      ),
    })
    const planned = await exited(2, there.gatewright(['plan', folder, '--json']))
    const [{ changes, logs, parts }] = JSON.parse(planned.output).results
    expect(logs.filter((line: string) => line.includes('"se-shared"'))).toHaveLength(1)
    expect(changes).toHaveLength(6)
    expect(parts).toHaveLength(5)
    const applied = await there.gatewright(['apply', folder])
    expect(applied.output).toMatch(/^6 added, 0 changed, 0 deleted, 0 unchanged\n/)
    expect(applied.code).toBe(0)
    expect(await Promise.all(['se-a', 'se-b', 'se-d'].map(parentOf))).toEqual(['se-shared', 'se-shared', 'se-other'])
    expect(await there.on.db.membership.count({ where: { group: { name: 'se-shared' } } })).toBe(2)
    for (const command of ['plan', 'diff']) expect(await there.gatewright([command, folder])).toMatchObject({ code: 0 })
  })

  test('are one where what they refer to is one', async () => {
    const entries = [
      group('se-top', ', id: top'),
      group('se-mid', ', id: mid, attrs: { parent: !KeyOf top }'),
      group('se-low', ', attrs: { parent: !KeyOf mid }'),
    ]
    const [top = '', mid = '', low = ''] = entries
    const renamed = [top.replace('id: top', 'id: t'), mid.replace('id: mid', 'id: top').replace('KeyOf top', 'KeyOf t')]
    const folder = folderOf({
      'a.yaml': document(top, mid, low),
      'b.yaml': document(...renamed, group('se-low-2', ', attrs: { parent: !KeyOf top }')),
    })
    const { code, output } = await there.gatewright(['apply', folder])
    expect(output).toMatch(/^4 added, 0 changed, 0 deleted, 0 unchanged\n/)
    expect(code).toBe(0)
    expect(await Promise.all(['se-mid', 'se-low', 'se-low-2'].map(parentOf))).toEqual(['se-top', 'se-mid', 'se-mid'])
  })

  test('are one where they may be made once only, where they are deleted, and under the owner of either file', async () => {
    const slug = (name: string, more = '') =>
      `{ model: service_core.application, identifiers: { slug: ${name} }, attrs: { name: ${name} }${more} }`
    const once = group('se-once', ', state: must_created')
    const owned = (text: string) => `owner: se-team\n${text}`
    const folder = folderOf({
      'a.yaml': document(once, slug('se-owned', ', owner: se-team')),
      'b.yaml': owned(document(slug('se-owned'), once)),
    })
    await exited(0, there.gatewright(['apply', folder]), /^2 added, 0 changed, 0 deleted, 0 unchanged\n/)
    const gone = document(group('se-once', ', state: absent'))
    expect((await exited(0, there.gatewright(['apply', folderOf({ 'a.yaml': gone, 'b.yaml': gone })]))).output).toMatch(
      /^0 added, 0 changed, 1 deleted, 0 unchanged\n/,
    )
  })

  test('are sent with each file by --each, and are no difference the second time', async () => {
    const folder = folderOf({
      'a.yaml': document(group('se-each')),
      'b.yaml': document(group('se-each'), group('se-e2')),
    })
    await exited(0, there.gatewright(['apply', '--each', folder]), /^applied .*a\.yaml\n[\s\S]*applied .*b\.yaml\n/)
  })

  test('of two submissions of one application are one application', async () => {
    const body = await named('oauth2', 'se-app')
    const { app, ...rest } = body
    const folder = folderOf({ 'a.json': JSON.stringify(body), 'b.json': JSON.stringify({ ...rest, app: { ...app } }) })
    await exited(0, there.gatewright(['apply', folder]), /^2 added, 0 changed, 0 deleted, 0 unchanged\n/)
  })

  test('of what import writes from two exports are one, and apply takes them', async () => {
    const theirs = (name: string) => `version: 1
entries:
  - { model: theirs_core.group, id: staff, identifiers: { name: se-staff }, attrs: { is_superuser: false } }
  - { model: theirs_core.group, identifiers: { name: ${name} }, attrs: { parent: !KeyOf staff } }
`
    const folder = folderOf({ 'a.yaml': theirs('se-imp-a'), 'b.yaml': theirs('se-imp-b') })
    const out = join(freshFolder(), 'ours.yaml')
    writeFileSync(out, '')
    expect(await there.gatewright(['import', folder, '--out', out])).toMatchObject({ code: 0 })
    expect(readFileSync(out, 'utf8').match(/name: se-staff/g)).toHaveLength(1)
    expect(await there.gatewright(['apply', out])).toMatchObject({ code: 0 })
    expect(await Promise.all(['se-imp-a', 'se-imp-b'].map(parentOf))).toEqual(['se-staff', 'se-staff'])
  })
})

describe('entries of two files that', () => {
  const a = group('se-c', ', attrs: { attributes: { a: 1 }, is_superuser: false }')
  test.each([
    ['give a field two values', a, group('se-c', ', attrs: { attributes: { a: 2 } }')],
    [
      'give a list other members',
      group('se-c', ', attrs: { users: [admin] }'),
      group('se-c', ', attrs: { users: [] }'),
    ],
    ['are present and absent', a, group('se-c', ', state: absent')],
    ['spell a name in two ways', a, group('SE-C')],
    [
      'belong to one name of two kinds',
      '{ model: service_providers_rac.racprovider, identifiers: { name: se-p } }',
      '{ model: service_providers_ldap.ldapprovider, identifiers: { name: se-p } }',
    ],
  ])('%s are refused with both places', async (_, one, other) => {
    const folder = folderOf({ 'a.yaml': document(group('se-none'), one), 'b.yaml': document(other, group('se-none')) })
    for (const args of [['apply'], ['validate'], ['plan', '--each']]) {
      const { code, output } = await there.gatewright([...args, folder])
      expect(code, output).toBe(1)
      expect(output).toMatch(/a\.yaml:4:\d+ \S+ "se-." is declared in \S+b\.yaml:3:\d+, too, and otherwise: /)
      expect(output).toMatch(/b\.yaml:3:\d+ \S+ "(se-.|SE-C)" is declared in \S+a\.yaml:4:\d+, too, and otherwise: /)
      expect(output).not.toContain('"se-none" is declared')
    }
    expect(await there.on.db.group.count({ where: { name: { in: ['se-c', 'SE-C', 'se-none'] } } })).toBe(0)
  })

  test('belong to two owners are refused with both places', async () => {
    const one = '{ model: service_core.application, identifiers: { slug: se-two }, attrs: { name: Two } }'
    const folder = folderOf({
      'a.yaml': `owner: se-a\n${document(one)}`,
      'b.yaml': document(one.replace('attrs', 'owner: se-b, attrs')),
    })
    const { code, output } = await there.gatewright(['plan', folder])
    expect(code).toBe(1)
    expect(output).toMatch(
      /b\.yaml:3:\d+ service_core\.application "se-two" is declared in \S+a\.yaml:4:\d+, too, and /,
    )
  })

  test('say different things of one row, or have conditions, are taken', async () => {
    const folder = folderOf({
      'a.yaml': document(group('se-both', ', attrs: { attributes: { a: 1 } }')),
      'b.yaml': document(
        group('se-both', ', attrs: { users: { add: [admin] } }'),
        group(
          'se-both',
          ', attrs: { attributes: { a: 2 } }, conditions: [!Find [service_core.group, [name, se-nowhere]]]',
        ),
      ),
    })
    expect(await there.gatewright(['apply', folder])).toMatchObject({ code: 0 })
    const row = await there.on.db.group.findFirstOrThrow({ where: { name: 'se-both' }, include: { memberships: true } })
    expect(row).toMatchObject({ attributes: { a: 1 }, memberships: [expect.anything()] })
  })
})
