import { readFile } from 'node:fs/promises'

/** The sentences of a section of docs/incidents.md. A row of a table is one, its cells joined by ` | `. */
export async function sentencesOf(section: string): Promise<string[]> {
  const text = await readFile(new URL('../../docs/incidents.md', import.meta.url), 'utf8')
  const [, body] = text.split(`## ${section}\n`)
  if (body === undefined) throw new Error(`docs/incidents.md has no section ${section}`)
  const [own = ''] = body.split('\n## ')
  const blocks = own.replace(/```[\s\S]*?```/g, '').split(/\n{2,}/)
  return blocks.flatMap((block) => (block.trim().startsWith('|') ? rowsOf(block) : inSentences(block)))
}

const rowsOf = (table: string): string[] =>
  table
    .trim()
    .split('\n')
    .slice(2)
    .map((row) => row.replace(/^\| | \|$/g, ''))

const inSentences = (paragraph: string): string[] =>
  paragraph
    .replace(/^- /gm, '')
    .replace(/\s+/g, ' ')
    .trim()
    .split(/(?<=[.:]) (?=[A-Z`])/)
    .filter((sentence) => sentence !== '')
