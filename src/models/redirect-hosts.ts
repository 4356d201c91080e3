import { operatorRules } from './operator-rules.ts'
import { allCharacters, type Characters, charactersOf, type Node, Refused } from './pattern-nodes.ts'
import { domain } from './syntax.ts'
import { redirectUri } from './urls.ts'

/** One of these characters; any number of them, too, when `isMany`. */
type Step = { readonly characters: Characters; readonly isMany: boolean; readonly text: string }

const form =
  'Must begin with a literal scheme and a host whose dots are escaped, such as https://app\\.example\\.com/cb/[0-9]+'

const [digits, ends, ofHosts] = ['[0-9]', '[/?#]', '[a-z0-9._-]'].map(charactersOf) as [bigint, bigint, bigint]
const maxAlternatives = 100

/**
 * Checks that all hosts that a pattern matches belong to one owner. The beginnings of a pattern are written out, one for each
 * alternative.
 *
 * @throws {Refused}
 */
export function checkHosts(whole: Node, text: string): void {
  let count = 0
  for (const steps of beginnings([whole], [])) {
    count += 1
    if (count > maxAlternatives)
      throw new Refused(`May have at most ${maxAlternatives} alternatives up to the end of the host.`)
    judge(steps, text)
  }
}

/**
 * The beginnings of a pattern, up to the end of the host: the third slash, or the end. Any character of a repeated part may stand
 * between its first and its last copy.
 */
function* beginnings(todo: readonly Node[], steps: readonly Step[]): Generator<readonly Step[]> {
  const [node, ...rest] = todo
  const passed = steps.filter(({ characters, isMany }) => !isMany && (characters & ~ends) === 0n)
  if (node === undefined || passed.length > 2) {
    yield steps
    return
  }
  switch (node.is) {
    case 'one':
      yield* beginnings(rest, [...steps, { ...node, isMany: false }])
      return
    case 'all':
      yield* beginnings([...node.nodes, ...rest], steps)
      return
    case 'either':
      for (const each of node.nodes) yield* beginnings([each, ...rest], steps)
      return
    case 'repeat': {
      const { node: copy, text, least, most } = node
      const one = { is: 'one', characters: allCharacters(copy), text } as const
      if (most > 1 && copy.is === 'one') yield* beginnings([copy, ...rest], [...steps, { ...one, isMany: true }])
      else if (most > 0) yield* beginnings([copy, ...rest], steps)
      if (most > 1 && copy.is !== 'one') {
        const others: Node = { is: 'repeat', node: one, least: 0, most, text }
        yield* beginnings([copy, others, copy, ...rest], steps)
      }
      if (least === 0) yield* beginnings(rest, steps)
      return
    }
    default:
      node satisfies never
  }
}

/** The only character that a step matches; undefined when there are several. */
function literalOf(step: Step | undefined): string | undefined {
  const { characters, isMany } = step ?? { characters: 0n, isMany: true }
  const isOne = characters > 0n && (characters & (characters - 1n)) === 0n && characters < 1n << 128n
  return isOne && !isMany ? String.fromCharCode(characters.toString(2).length - 1) : undefined
}

/** @throws {Refused} */
function judge(steps: readonly Step[], text: string): void {
  const literals = steps.map((step) => literalOf(step) ?? '\n').join('')
  const [start, scheme = ''] = /^([a-z][a-z\d+.-]*):/.exec(literals) ?? []
  if (start === undefined) throw refused(steps[/^[a-z\d+.-]*/.exec(literals)?.[0].length ?? 0], text)
  if (!/^https?$/.test(scheme)) {
    const error = redirectUri(`${scheme}:/x`)
    if (error !== undefined) throw new Refused(error)
    // "localhost:3000" has no scheme.
    const next = steps[start.length]
    if (next === undefined || (next.characters & digits) !== 0n) throw refused(next, text)
    return
  }
  if (!literals.startsWith('//', start.length)) throw refused(steps[start.length], text)
  const [, address] = /^:\/\/(\[[\da-f:.]+\])/.exec(literals.slice(scheme.length)) ?? []
  const from = start.length + 2 + (address?.length ?? 0)
  // Any number of slashes ends the host, or none.
  const tail = steps.slice(from).filter(({ characters, isMany }) => !isMany || (characters & ~ends) !== 0n)
  const end = tail.findIndex(({ characters }) => (characters & ~ends) === 0n)
  const authority = end < 0 ? tail : tail.slice(0, end)
  const colon = authority.findIndex((step) => literalOf(step) === ':')
  const host = colon < 0 ? authority : authority.slice(0, colon)
  const stray =
    host.find(({ characters }) => (characters & ~ofHosts) !== 0n) ??
    (colon < 0 ? undefined : authority.slice(colon + 1).find(({ characters }) => (characters & ~digits) !== 0n))
  if (stray !== undefined) throw refused(stray, text)
  const error = address === undefined ? ownerError(host, scheme, text) : redirectUri(`${scheme}://${address}/`)
  if (error !== undefined) throw new Refused(error)
}

function ownerError(host: readonly Step[], scheme: string, text: string): string | undefined {
  const literals = host.map((step) => literalOf(step) ?? '\n').join('')
  const varying = host.findLast((step) => literalOf(step) === undefined)
  if (varying === undefined)
    return /^[^.]+(?:\.[^.]+)*\.?$/.test(literals) ? redirectUri(`${scheme}://${literals}/`) : `${form}.`
  const [, parent = ''] = /^[^.\n]*\.([^\n]+)$/.exec(literals.slice(literals.lastIndexOf('\n') + 1)) ?? []
  // Each of these hosts is this machine (RFC 6761).
  if (parent === 'localhost') return undefined
  const such = `May not vary a host by ${(host.findLast(({ isMany }) => isMany) ?? varying).text}`
  if (parent === '')
    return `${such} in its last label or alone: others have hosts of such names. End it with a domain of yours, such as [a-z0-9-]+\\.example\\.com.`
  if (domain(parent) !== undefined && !/^[a-z\d-]+$/.test(parent))
    return `${such} above ${parent}, which is no domain name.`
  if (operatorRules()?.isParentDomain(parent) === false)
    return `${such} directly below ${parent}, where others have hosts, too: write more of the host out, such as [a-z0-9-]+\\.example\\.com. The operator of a closed network lists its domains in REDIRECT_PARENT_DOMAINS.`
  return scheme === 'https' ? undefined : `${such} with http: write https, or the host out: ${text}.`
}

/** The error of a step that no host has there. */
function refused(step: Step | undefined, text: string): Refused {
  if (step === undefined) return new Refused(`${form}.`)
  if (literalOf(step) !== undefined) return new Refused(`${form}: ${step.text} cannot stand there.`)
  const escaped = text.replace(/^([^/]*:\/\/)([^/?#]*)/, (_, scheme: string, host: string) => {
    return `${scheme}${host.replace(/(?<![\\\])])\.(?=[\w(-])/g, '\\.')}`
  })
  if (step.text === '.' && !step.isMany && escaped !== text)
    return new Refused(
      `${form}: a . that is not escaped matches any character, and so hosts of others. Write ${escaped}`,
    )
  return new Refused(
    `${form}: ${step.text} can match / @ or #, and so the host of another. Write [A-Za-z0-9-]+ for a label, (:[0-9]+)? for a port, and (/.*)? behind the host.`,
  )
}
