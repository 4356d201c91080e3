/**
 * Scans YAML text for its brackets and quotes. It builds no values. It is used for texts that the parser refused: it finds the
 * lines that are indented less than the parser wants although other readers take them, and the brackets and quotes that are never
 * closed.
 */

/** A bracket or quote, and its offset. */
export type Mark = { readonly sign: string; readonly offset: number }

/** A line inside brackets or quotes that is indented less than YAML 1.2 asks for. */
export type ShortLine = { readonly start: number; readonly missing: number }

export type Scan = {
  readonly shortLines: readonly ShortLine[]
  /** The marks that are open at the end of the text, the outermost first. */
  readonly open: readonly Mark[]
  /** A bracket that closes one of the other kind. */
  readonly crossed: { readonly opened: Mark; readonly closed: Mark } | undefined
  /** Quotes that span lines, by the offset behind their end. */
  readonly quotesOverLines: ReadonlyMap<number, Mark>
}

const closers = new Map([
  ['[', ']'],
  ['{', '}'],
])
const isBlank = (char: string | undefined) => char === ' ' || char === '\t'
const isEnd = (char: string | undefined) => char === undefined || char === '\n' || char === '\r'
const isSpace = (char: string | undefined) => isBlank(char) || isEnd(char)
const isFlowSign = (char: string | undefined) => char !== undefined && ',[]{}'.includes(char)

export function scan(text: string): Scan {
  const shortLines: ShortLine[] = []
  const open: Mark[] = []
  const quotesOverLines = new Map<number, Mark>()
  let crossed: Scan['crossed']
  let at = 0
  let lineStart = 0
  /** The column of the key, `-` or `?` whose value comes next; -1 at the start of a document. */
  let parent = -1
  /** The column of a possible key on this line. */
  let key: number | undefined
  /** Whether the position is right behind a closed bracket or quote: a colon there needs no space behind it. */
  let isBehindClosed = false

  const column = () => at - lineStart

  /** Counts the spaces of the line that begins here. */
  function indentHere(): number {
    let end = at
    while (text[end] === ' ') end += 1
    return end - at
  }

  const isDocumentMark = () =>
    column() === 0 && (text.startsWith('---', at) || text.startsWith('...', at)) && isSpace(text[at + 3])

  /** Goes from the end of a line to the start of the next one. */
  function nextLine(): void {
    at += text.startsWith('\r\n', at) ? 2 : 1
    lineStart = at
    key = undefined
    if (open.length === 0 || isDocumentMark()) return
    const indent = indentHere()
    const first = text[at + indent]
    if (!isSpace(first) && indent <= parent) shortLines.push({ start: lineStart, missing: parent + 1 - indent })
  }

  function skipToEnd(): void {
    while (!isEnd(text[at])) at += 1
  }

  /** Skips blank characters, ends of lines and comments. */
  function skipSpace(): void {
    while (at < text.length) {
      if (isBlank(text[at])) at += 1
      else if (isEnd(text[at])) nextLine()
      else if (text[at] === '#' && (at === lineStart || isBlank(text[at - 1]))) skipToEnd()
      else return
      isBehindClosed = false
    }
  }

  /** Skips a quoted text: to the end of the document, if the quotes are never closed. */
  function skipQuoted(sign: string): void {
    const start = { sign, offset: at }
    const firstLine = lineStart
    open.push(start)
    at += 1
    while (at < text.length) {
      if (isEnd(text[at])) nextLine()
      else if (at === lineStart && isDocumentMark()) {
        at = text.length
        return
      } else if (sign === '"' && text[at] === '\\') at += isEnd(text[at + 1]) ? 1 : 2
      else if (text[at] !== sign) at += 1
      else if (sign === "'" && text[at + 1] === sign) at += 2
      else {
        at += 1
        open.pop()
        isBehindClosed = true
        if (lineStart !== firstLine) quotesOverLines.set(at, start)
        return
      }
    }
  }

  /** Skips `|` and `>`, with their lines. */
  function skipBlockScalar(): void {
    const digit = /^[|>][-+]?([1-9])/.exec(text.slice(at, at + 3))?.[1]
    let content = digit === undefined ? undefined : Math.max(parent, 0) + Number(digit)
    skipToEnd()
    while (at < text.length) {
      nextLine()
      if (isDocumentMark()) return
      const indent = indentHere()
      if (!isEnd(text[at + indent])) {
        content ??= Math.max(indent, parent + 1)
        if (indent < content) return
      }
      skipToEnd()
    }
  }

  /** Whether a text without quotes ends here. */
  function endsPlain(): boolean {
    const char = text[at]
    const inFlow = open.length > 0
    if (isEnd(char) || (inFlow && isFlowSign(char))) return true
    if (char === '#') return isBlank(text[at - 1]) || at === lineStart
    return char === ':' && (isSpace(text[at + 1]) || (inFlow && isFlowSign(text[at + 1])))
  }

  /** Whether a text without quotes goes on in the next line; the position is there then. */
  function goesOn(): boolean {
    while (at < text.length) {
      nextLine()
      if (isDocumentMark()) return false
      const indent = indentHere()
      at += indent
      while (isBlank(text[at])) at += 1
      if (!isEnd(text[at])) return (open.length > 0 || indent > parent) && !endsPlain()
    }
    return false
  }

  function skipPlain(): void {
    do {
      // The first character is a part of it, whatever it is.
      do at += 1
      while (!endsPlain())
    } while (isEnd(text[at]) && goesOn())
  }

  /** Skips an anchor, an alias or a tag. */
  function skipProperty(): void {
    const end = text.startsWith('!<', at) ? text.indexOf('>', at) : -1
    if (end > at) at = end
    do at += 1
    while (!isSpace(text[at]) && !(open.length > 0 && isFlowSign(text[at])))
  }

  /** @returns false unless a bracket, `,`, quote, anchor, alias or tag stands here */
  function takeSign(char: string): boolean {
    const wasBehindClosed = isBehindClosed
    isBehindClosed = false
    if (char === '"' || char === "'") skipQuoted(char)
    else if ('&*!'.includes(char)) skipProperty()
    else if (closers.has(char)) {
      open.push({ sign: char, offset: at })
      at += 1
    } else if (open.length > 0 && (char === ',' || (char === ':' && wasBehindClosed))) at += 1
    else if (open.length > 0 && (char === ']' || char === '}')) close(char)
    else return false
    return true
  }

  function close(char: string): void {
    const opened = open.pop()
    if (opened !== undefined && closers.get(opened.sign) !== char) {
      crossed = { opened, closed: { sign: char, offset: at } }
      at = text.length
    }
    at += 1
    isBehindClosed = true
  }

  /** Takes `- `, `? ` and `: `. */
  function takeIndicator(char: string): boolean {
    const next = text[at + 1]
    if (!'-?:'.includes(char) || !(isSpace(next) || (open.length > 0 && isFlowSign(next)))) return false
    if (open.length === 0) {
      parent = char === ':' ? (key ?? column()) : column()
      key = undefined
    }
    at += 1
    isBehindClosed = false
    return true
  }

  while (at < text.length && crossed === undefined) {
    skipSpace()
    const char = text[at]
    if (char === undefined) break
    if (isDocumentMark()) {
      if (open.length > 0) break
      parent = -1
      at += 3
      continue
    }
    if (takeIndicator(char)) continue
    if (open.length === 0) key ??= column()
    if (takeSign(char)) continue
    if (open.length === 0 && (char === '|' || char === '>')) skipBlockScalar()
    else if (open.length === 0 && char === '%' && column() === 0) skipToEnd()
    else skipPlain()
  }
  return { shortLines, open, crossed, quotesOverLines }
}
