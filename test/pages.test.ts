import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { marked } from 'marked'
import { expect, test } from 'vitest'

/** The pages of the documentation refer to what is there. */

const root = fileURLToPath(new URL('../', import.meta.url))
const textOf = (path: string) => readFileSync(join(root, path), 'utf8')

const filesBelow = (folder: string, ending: RegExp): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && ending.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .filter((path) => !path.startsWith('src/db/generated/'))

const decisions = readdirSync(join(root, 'docs/adr')).filter((name) => name !== 'README.md')
const numbers = new Set(decisions.map((name) => Number(name.slice(0, 4))))
const pages = ['README.md', 'SECURITY.md', 'CHANGELOG.md', ...filesBelow('docs', /\.md$/)]
// A migration keeps its text, also when a decision that it cites goes.
const sources = ['src', 'workers', 'tools', 'test', 'bench', 'prisma'].flatMap((folder) =>
  filesBelow(folder, /\.(ts|prisma|md)$/),
)

/** The anchors of a page, as GitHub makes them from its headings. */
const anchorsOf = (text: string) =>
  new Set(
    [...text.replace(/^```.*?^```$/gms, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )

test('each decision that a file cites is there', () => {
  expect(decisions.filter((name) => !/^\d{4}-[a-z0-9-]+\.md$/.test(name))).toEqual([])
  expect(numbers.size).toBe(decisions.length)
  const missing = [...pages, ...sources].flatMap((path) => {
    const text = textOf(path)
    const files = [...text.matchAll(/\badr\/(\d{4}-[\w-]+\.md)/g)].filter(([, name = '']) => !decisions.includes(name))
    const cited = [...text.matchAll(/\bADR (\d+)/g)].filter(([, number]) => !numbers.has(Number(number)))
    return [...files, ...cited].map(([found]) => `${path}: ${found}`)
  })
  expect(missing).toEqual([])
})

test('docs/adr/README.md lists each decision once, with its title, and no other', () => {
  const listed = [...textOf('docs/adr/README.md').matchAll(/^- \[(\d+)\]\(([^)]+)\) \*\*(.+)\*\*: .+$/gm)]
  const titles = decisions.map((name) => {
    const [, number, title] = /^# (\d+)\. (.+)\n/.exec(textOf(`docs/adr/${name}`)) ?? []
    return [number, name, title]
  })
  expect(listed.map(([, ...line]) => line).sort()).toEqual(titles.sort())
})

test.each(pages)('the links of %s lead somewhere', (path) => {
  const links = [...textOf(path).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link = '']) => link)
  const broken = links.filter((link) => {
    const [file = '', anchor] = link.split('#')
    const target = file === '' ? path : join(dirname(path), decodeURIComponent(file))
    if (!existsSync(join(root, target))) return true
    return anchor !== undefined && !anchorsOf(textOf(target)).has(anchor)
  })
  expect(broken).toEqual([])
})

test.each(pages)('%s has no row without its table', (page) => {
  const tokens = marked.lexer(textOf(page))
  expect(tokens.filter(({ type, raw }) => type === 'paragraph' && raw.startsWith('|'))).toEqual([])
})
