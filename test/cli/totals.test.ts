import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { byFile, totalsOf, totalsText } from '../../src/cli/totals.ts'
import { adminToken, freshFolder, listening } from '../support/kit.ts'
import { partOf } from '../support/part.ts'

/** Totals of objects, and the outcome of each file of a document. */

const there = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: freshFolder() }, 'src/cli/gatewright.ts')

const application = (slug: string, more = '') =>
  `  - { model: service_core.application, identifiers: { slug: ${slug} }, attrs: { name: ${slug} }${more} }\n`
const document = (...entries: string[]) => `version: 1\nentries:\n${entries.join('')}`

type Facts = { action: string; slug?: string; entry?: number | null }
const changeOf = ({ action, slug = 'a', ...entry }: Facts) => ({
  ...{ model: 'service_core.application', key: { slug }, action, fields: {} },
  ...entry,
})

describe('totals', () => {
  test.each([
    [['create'], '1 to add, 0 to change, 0 to delete'],
    [['create', 'update', 'unchanged'], '1 to add, 0 to change, 0 to delete'],
    [['unchanged', 'update', 'unchanged'], '0 to add, 1 to change, 0 to delete'],
    [['update', 'delete'], '0 to add, 0 to change, 1 to delete'],
    [['delete', 'create'], '0 to add, 1 to change, 0 to delete'],
    [['create', 'delete'], '0 to add, 0 to change, 0 to delete'],
  ])('of one object that is %j', (actions, text) => {
    const totals = totalsOf([{ changes: actions.map((action) => changeOf({ action })) }])
    expect(totals === null ? null : totalsText(totals, false)).toBe(text)
  })

  test('are null where nothing is known, and leave out what is not', () => {
    expect(totalsOf([{ changes: null }])).toBeNull()
    const known = { changes: [changeOf({ action: 'create' })] }
    expect(totalsOf([{ changes: null }, known])).toEqual({ add: 1, change: 0, delete: 0, unchanged: 0 })
  })
})

test('each file has the changes of its own entries', () => {
  const parts = [partOf('a.yaml', 0, 2), partOf('b.yaml', 2, 1), partOf('none.yaml', 3, 0), partOf('c.yaml', 3, 2)]
  const changes = [
    changeOf({ action: 'unchanged', slug: 'a0' }),
    changeOf({ action: 'unchanged', slug: 'a1' }),
    changeOf({ action: 'update', slug: 'taken', entry: 1 }),
    changeOf({ action: 'unchanged', slug: 'b0' }),
    changeOf({ action: 'create', slug: 'c1', entry: 4 }),
    changeOf({ action: 'delete', slug: 'gone', entry: null }),
  ]
  const found = byFile({ file: 'all', outcome: 'changes', changes, parts })
  expect(found.map(({ file, outcome, changes }) => [file, outcome, changes?.map(({ key }) => key.slug)])).toEqual([
    ['a.yaml', 'changes', ['a0', 'a1', 'taken']],
    ['b.yaml', 'unchanged', ['b0']],
    ['none.yaml', 'unchanged', []],
    ['c.yaml', 'changes', ['c1']],
  ])
})

describe('a folder', () => {
  const folder = freshFolder()
  const [a, b] = ['a.yaml', 'b.yaml'].map((name) => join(folder, name)) as [string, string]
  const owner = ['--owner', 'totalled']
  const files = () => [folder, ...owner]
  const write = (inA: string[], inB: string[]) => {
    writeFileSync(a, `prune: true\n${document(...inA)}`)
    writeFileSync(b, document(...inB))
  }

  test('of new objects is added', async () => {
    write([application('total-1'), application('total-2')], [application('total-3'), application('total-4')])
    const { output } = await there.gatewright(['apply', ...files()])
    expect(output).toMatch(/^4 added, 0 changed, 0 deleted, 0 unchanged\napplied /)
  })

  test('shows which file changes what, and what is deleted first', async () => {
    const skipped = (slug: string) => application(slug, ', conditions: [false]')
    const changed = application('total-3', ', state: present').replace('name: total-3', 'name: Third')
    write(
      [skipped('total-0'), application('total-1'), application('total-2')],
      [skipped('total-00'), changed, application('total-5')],
    )
    const summary = join(freshFolder(), 'summary.md')
    const { output, code } = await there.gatewright(['plan', ...files(), '--json', '--summary', summary])
    expect(code, output).toBe(2)
    const { totals, results } = JSON.parse(output)
    expect(totals).toEqual({ add: 1, change: 1, delete: 1, unchanged: 2 })
    expect(results).toMatchObject([
      {
        files: [a, b],
        parts: [
          { file: a, outcome: 'unchanged' },
          { file: b, outcome: 'changes' },
        ],
      },
    ])
    const text = readFileSync(summary, 'utf8')
    expect(text).toContain(
      `### gatewright plan: 1 to add, 1 to change, 1 to delete\n\n**Deletes**\n\n- service_core.application "total-4"\n\n| File | Outcome |\n| --- | --- |\n| ${b} | changes |\n\n2 unchanged in 1 file\n`,
    )
    expect(text).toContain(`<details><summary>${b}</summary>`)
    expect(text).not.toContain(`<details><summary>${a}</summary>`)
    const diffed = await there.gatewright(['diff', ...files()])
    expect(diffed.output).toMatch(/^1 to add, 1 to change, 1 to delete\n~ .*\n2 unchanged in 1 file\n$/s)
  })
})
