import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isUnreadable, readInputs } from '../../src/cli/inputs.ts'
import { freshFolder, installation } from '../support/kit.ts'

/** The examples of docs/blueprints.md, in their order, as the program sends them. */

const page = readFileSync(new URL('../../docs/blueprints.md', import.meta.url), 'utf8')
const examples = [...page.matchAll(/^#+ ([^\n]+)|^```yaml\n(.*?)^```$/gms)].reduce<[title: string, text: string][]>(
  (found, [, title, text]) => {
    if (title !== undefined) found.push([title, ''])
    const last = found.at(-1)
    if (text !== undefined && last !== undefined) last[1] = text
    return found
  },
  [],
)

test('every tag has an example', () => {
  const tags = [
    'KeyOf',
    'Find',
    'Context',
    'Format',
    'If',
    'Condition',
    'Enumerate',
    'Index',
    'Value',
    'AtIndex',
    'Env',
    'File',
  ]
  const all = examples.map(([, text]) => text).join('')
  expect(tags.filter((tag) => !new RegExp(`!${tag}\\b`).test(all))).toEqual([])
})

test('each example is applied, and a second time changes nothing', async () => {
  const on = await installation()
  const folder = freshFolder()
  for (const [title, text] of examples.filter(([, text]) => text !== '')) {
    const file = join(folder, 'example.yaml')
    writeFileSync(file, text)
    const { documents } = await readInputs([file], {})
    const [document] = documents
    if (document === undefined || isUnreadable(document)) throw new Error(`${title}: ${document?.errors}`)
    const headers = { 'content-type': 'application/yaml' }
    const send = () => on.admin.put('/api/v3/blueprints/', document.body, { headers })
    const first = await send()
    expect(first.json, `${title}: ${first.text}`).toMatchObject({ applied: true })
    const { logs } = (await send()).json as { logs: string[] }
    expect(
      logs.filter((line) => !/ unchanged$| left as it is$| was not there$| skipped: /.test(line)),
      title,
    ).toEqual([])
  }
  const groups = await on.db.group.findMany({ select: { name: true, attributes: true } })
  const attributesOf = new Map(groups.map(({ name, attributes }) => [name, attributes]))
  expect(attributesOf.get('site wiki')).toEqual({ first: 'a', hosts: ['a.wiki.example.com', 'b.wiki.example.com'] })
  expect(attributesOf.get('blue')).toEqual({ contact: 'blue@example.com' })
  expect(attributesOf.get('merged')).toEqual({ cost_center: 4700 })
  expect(attributesOf.get('by default')).toEqual({ motd: 'none' })
  expect(['engineering guests', 'team-1', 'operators', 'guests'].map((name) => attributesOf.has(name))).toEqual([
    true,
    true,
    true,
    false,
  ])
})
