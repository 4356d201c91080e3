import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { marked, type Token, type Tokens } from 'marked'
import { describe, expect, test } from 'vitest'
import { emptyResult, type Result } from '../../src/cli/deliver.ts'
import { openOutput } from '../../src/cli/output.ts'
import { logsOf, remarksOf } from '../../src/cli/report.ts'
import { writeSummary } from '../../src/cli/summary.ts'
import { freshFolder } from '../support/folder.ts'
import { partOf } from '../support/part.ts'

/** The Markdown of `--summary`, as a parser of GitHub's Markdown reads it. */

function summaryOf(results: readonly Result[], { title = 'plan', secrets = new Set<string>() } = {}): string {
  const file = join(freshFolder(), 'summary.md')
  writeSummary(file, title, results, openOutput({}, secrets))
  return readFileSync(file, 'utf8')
}

const changeOf = (action: string, name: string, to: unknown = name, entry?: number | null) => ({
  ...{ model: 'service_core.group', key: { name }, action, fields: { name: { from: null, to } } },
  ...(entry !== undefined && { entry }),
})
const planned = (file: string, changes: Result['changes']): Result => ({
  ...emptyResult,
  ...{ file, changes, outcome: 'changes' },
})

const decoded = (html: string) => html.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
const textOf = (tokens: readonly Token[] = []): string =>
  decoded(tokens.map((token) => ('text' in token && token.type === 'text' ? token.raw : `{${token.type}}`)).join(''))

/** What a reader sees: anything else than these is Markdown that a name has made. */
function parse(text: string) {
  const tokens = marked.lexer(text).filter(({ type }) => type !== 'space')
  expect(new Set(tokens.map(({ type }) => type))).toSatisfy((types: Set<string>) =>
    types.isSubsetOf(new Set(['heading', 'paragraph', 'list', 'table', 'html', 'code'])),
  )
  const of = <Type extends Token>(type: string) => tokens.filter((token) => token.type === type) as Type[]
  const html = of<Tokens.HTML>('html').map(({ raw }) => raw.trim())
  const opened = html.flatMap((each) => /^<details><summary>([^<]*)<\/summary>$/.exec(each)?.[1] ?? [])
  expect(html.filter((each) => each === '</details>')).toHaveLength(opened.length)
  expect(html).toHaveLength(2 * opened.length)
  const [table] = of<Tokens.Table>('table')
  return {
    head: of<Tokens.Heading>('heading').map((each) => each.text),
    paragraphs: of<Tokens.Paragraph>('paragraph').map(({ text }) => text),
    deletions: of<Tokens.List>('list').flatMap(({ items }) =>
      items.map(({ tokens }) => textOf(tokens.flatMap((each) => ('tokens' in each ? (each.tokens ?? []) : [each])))),
    ),
    rows: (table?.rows ?? []).map((cells) => cells.map((each) => textOf(each.tokens))),
    files: opened.map(decoded),
    blocks: of<Tokens.Code>('code').map((each) => each.text),
  }
}

const hostile = [
  'a|b.yaml',
  'a\\|b\\.yaml',
  '`code`.yaml',
  '</summary></details><script>.yaml',
  '**bold** _slanted_ ~~gone~~.yaml',
  '[link](http://x) ![image](x) www.example.com.yaml',
  '&lt;&#124;.yaml',
  '``````.yaml',
  '$x$ # 1 @team.yaml',
]

test.each(hostile)('a file that is called %s is shown as it is', (name) => {
  const seen = parse(summaryOf([planned(name, [changeOf('create', 'a')]), planned('other.yaml', [])]))
  expect(seen.rows).toEqual([
    [name, 'changes'],
    ['other.yaml', 'changes'],
  ])
  expect(seen.files).toEqual([name])
})

test.each([...hostile, '```\n</details>\n# head', '`'.repeat(40)])('an object that is called %j, too', (name) => {
  const seen = parse(summaryOf([planned('a.yaml', [changeOf('delete', name), changeOf('create', name)])]))
  expect(seen.deletions).toEqual([`service_core.group ${JSON.stringify(name)}`])
  expect(seen.blocks).toHaveLength(1)
  expect(seen.blocks[0]).toContain(JSON.stringify(name))
})

test('who may read secrets by it stands beside the changes of a plan, and in what was applied', () => {
  const line = 'user "sign-in-1" gets the right to read secrets of oauth2 providers of owner "team-a"'
  const plan: Result = { ...planned('a.yaml', [changeOf('create', 'a')]), logs: ['group "a" would be created', line] }
  expect(summaryOf([plan])).toContain(line)
  expect(remarksOf(plan)).toEqual([line])
  expect(logsOf({ ...plan, outcome: 'applied' })).toContain(line)
})

test.each([
  'shop created 2026',
  'a deleted "b',
  'warning: x',
  'group "a" would be created',
  'a\nb: unchanged',
  '5 updated',
])('remarks about an object that is called %j stay beside its change', (name) => {
  const what = `provider oauth2 ${JSON.stringify(name)}`
  const remarks = [
    `${what} had no owner: it belongs to owner "team-a" now`,
    `warning: the sent client_secret of ${what} has fewer than 20 characters`,
    `warning: ${what}: tokens are valid for a year`,
    `2 users whom the request does not name would gain rights: ann (view_user), ${name} (view_user)`,
    `3 users whom the request does not name would gain rights: ${name}, created (view_user) and 1 more`,
  ]
  const ends = ['would be created', 'would be updated: name "a" -> "b"', 'deleted (pk 5)', 'left as it is', 'unchanged']
  const logs = [...ends.map((end) => `${what} ${end}`), 'user 5 would be deleted', 'user 6 unchanged', ...remarks]
  expect(remarksOf({ ...planned('a.yaml', [changeOf('create', 'a')]), logs })).toEqual(remarks)
})

test('lines of errors that look like a fence do not end it', () => {
  const errors = ['the first\n```\n~~~\n</details>', 'the `````` second']
  const refused: Result = { ...emptyResult, file: 'a.yaml', outcome: 'refused', errors }
  const seen = parse(summaryOf([refused]))
  expect(seen.head).toEqual(['gatewright plan: 1 refused'])
  expect(seen.blocks).toEqual([errors.join('\n')])
})

test('a secret that is a part of the Markdown hides nothing of it', () => {
  const secrets = new Set(['details', 'diff', '| --- |', 'summary'])
  const seen = parse(summaryOf([planned('details.yaml', [changeOf('create', 'summary')])], { secrets }))
  expect(seen).toMatchObject({ rows: [['********.yaml', 'changes']], files: ['********.yaml'] })
})

describe('a summary that is too long', () => {
  const results = (count: number, lines: number): Result[] =>
    Array.from({ length: count }, (_, each) =>
      planned(
        `deploy/team-${each}/applications.yaml`,
        Array.from({ length: lines }, (_, at) => changeOf('create', `group ${each} ${at}`)),
      ),
    )

  test('is cut between files', () => {
    const text = summaryOf(results(300, 20))
    expect(text.length).toBeLessThanOrEqual(60_000)
    const { rows, files, blocks, paragraphs } = parse(text)
    expect(rows).toHaveLength(300)
    expect(files.length).toBeGreaterThan(5)
    // Those that are shown are whole.
    for (const block of blocks) expect(block.split('\n')).toHaveLength(40)
    expect(paragraphs.at(-1)).toBe(`The fields of ${300 - files.length} more files are not shown.`)
  })

  test('shows a part of a file that is too long by itself, and the next one', () => {
    const [first, second] = [results(1, 2_000), planned('second.yaml', [changeOf('create', 'b')])]
    const { files, blocks, paragraphs } = parse(summaryOf([...first, second]))
    expect(files).toEqual(['deploy/team-0/applications.yaml', 'second.yaml'])
    const [lines = 0] = blocks.map((block) => block.split('\n').length)
    expect(paragraphs).toContain(`${4_000 - lines} more lines are not shown.`)
  })

  test.each([1, 10_000])('has a table of 10 000 files in %i documents, those that change first', (documents) => {
    const names = Array.from({ length: 10_000 }, (_, each) => `deploy/${each}/applications.yaml`)
    const actionOf = (each: number) => (each % 1_000 === 999 ? 'update' : 'unchanged')
    const changes = names.map((file, each) => changeOf(actionOf(each), file))
    const all: Result[] =
      documents === 1
        ? [{ ...planned('all', changes), parts: names.map((file, from) => partOf(file, from, 1)) }]
        : names.map((file, each) => ({
            ...planned(file, changes.slice(each, each + 1)),
            outcome: actionOf(each) === 'update' ? 'changes' : 'unchanged',
          }))
    const text = summaryOf(all)
    expect(text.length).toBeLessThanOrEqual(60_000)
    const { head, rows, files, paragraphs } = parse(text)
    expect(head).toEqual(['gatewright plan: 0 to add, 10 to change, 0 to delete'])
    expect(rows.map(([file]) => file)).toEqual(files)
    expect(files).toHaveLength(10)
    expect(paragraphs).toEqual([`9990 unchanged${documents === 1 ? ' in 9990 files' : ''}`])
  })

  test('says how many deletions it does not show', () => {
    const many = Array.from({ length: 5_000 }, (_, each) => changeOf('delete', `group ${each}`, null, null))
    const text = summaryOf([{ ...planned('a.yaml', many), parts: [partOf('a.yaml', 0, 0), partOf('b.yaml', 0, 0)] }])
    expect(text.length).toBeLessThanOrEqual(60_000)
    const { deletions, paragraphs, files } = parse(text)
    expect(deletions.length).toBeGreaterThan(100)
    expect(files).toEqual(['left over'])
    expect(paragraphs.slice(0, 2)).toEqual(['**Deletes**', `${5_000 - deletions.length} more deletions are not shown.`])
  })
})

test('an apply has the log of what was done', () => {
  const changes = [changeOf('create', 'a')]
  const applied: Result = { ...planned('a.yaml', changes), outcome: 'applied', logs: ['group "a" created (pk 1)'] }
  const open: Result = { ...emptyResult, file: 'b.yaml', outcome: 'not tried' }
  const seen = parse(summaryOf([applied, open], { title: 'apply' }))
  expect(seen.head).toEqual(['gatewright apply: 1 added, 0 changed, 0 deleted, 0 unchanged (1 not tried)'])
  expect(seen.blocks).toEqual(applied.logs)
})
