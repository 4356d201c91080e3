import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { assetsPath } from './addresses.ts'

/** The files that the operators' pages load. Each has its digest in its name, so a browser may keep it. */

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')
const morph = readFileSync(fileURLToPath(import.meta.resolve('idiomorph/dist/idiomorph.min.js')), 'utf8')

function asset(name: string, ending: 'css' | 'js', text: string) {
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const type = ending === 'css' ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8'
  return { path: `${assetsPath}${name}.${digest}.${ending}`, type, text }
}

const style = read('style.css')
const [tokens = ''] = /^:root \{[^}]*\}/.exec(style) ?? []

export const assets = {
  style: asset('style', 'css', style),
  // The board has rules of its own, which ours must not reach: it takes our colours, and our header.
  board: asset(
    'board',
    'css',
    `${tokens.replace(':root', ':root, .dark-mode')}
${read('board/board.css')}
@scope (body > header) {
${style.replaceAll('body > header', ':scope')}}`,
  ),
  // The scripts are one file: no page waits for a second one.
  script: asset('live', 'js', `${morph}\n${read('live.js')}`),
} as const
