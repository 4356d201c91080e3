import { type Characters, type Node, Refused } from './pattern-nodes.ts'

/**
 * Checks that an engine that backtracks matches a pattern in linear time. Such an engine tries all ways in which the parts of a
 * pattern match a text. Their number must not grow with the text: no repeat takes the same text in two ways (A. Weber, H. Seidl,
 * "On the degree of ambiguity of finite automata", 1991: EDA and IDA), and the rest is bounded.
 *
 * @throws {Refused}
 */
export const checkPaths = (whole: Node): void => new Paths(whole).check()

const ambiguous = (text: string) =>
  new Refused(
    `May not repeat parts that match the same text, which can take for ever: ${text}. Write one repeat, such as .*, or such as cannot match what stands between them, such as [^/]+/[^/]+.`,
  )

/** The most places. Each copy of a character of the pattern is one. An engine may write out a repeated part. */
const maxPlaces = 600
const maxWays = 1_000
const maxSteps = 20_000

type PathEnds = { readonly isEmpty: boolean; readonly first: readonly number[]; readonly last: readonly number[] }

const nothing: PathEnds = { isEmpty: true, first: [], last: [] }

/** The places of a pattern, with the ones that follow each (V. M. Glushkov, 1961). */
class Paths {
  readonly #characters: Characters[] = []
  readonly #texts: string[] = []
  readonly #next: number[][] = []
  readonly #first: readonly number[]
  #steps = 0

  constructor(whole: Node) {
    this.#first = this.#add(whole, whole.text).first
  }

  /** @param within the innermost repeat that it is part of */
  #add(node: Node, within: string): PathEnds {
    switch (node.is) {
      case 'one': {
        const place = this.#next.push([]) - 1
        if (place === maxPlaces) throw new Refused(`May have at most ${maxPlaces} characters with repeats written out.`)
        this.#characters.push(node.characters)
        this.#texts.push(within)
        return { isEmpty: false, first: [place], last: [place] }
      }
      case 'all':
        return node.nodes.reduce((before, each) => this.#join(before, this.#add(each, within)), nothing)
      case 'either': {
        const all = node.nodes.map((each) => this.#add(each, within))
        if (all.filter(({ isEmpty }) => isEmpty).length > 1) throw ambiguous(node.text)
        const isEmpty = all.some((each) => each.isEmpty)
        return { isEmpty, first: all.flatMap(({ first }) => first), last: all.flatMap(({ last }) => last) }
      }
      case 'repeat': {
        const { least, most, text } = node
        if (most === 0) return nothing
        let [whole, copy] = [nothing, nothing]
        for (let times = 0; times < Math.max(1, least); times += 1) {
          copy = this.#add(node.node, text)
          if (copy.isEmpty) throw ambiguous(text)
          whole = this.#join(whole, copy)
        }
        if (most > Math.max(1, least)) this.#link(copy.last, copy.first, text)
        return { ...whole, isEmpty: least === 0 }
      }
      default:
        return node satisfies never
    }
  }

  #join(before: PathEnds, next: PathEnds): PathEnds {
    this.#link(before.last, next.first, '')
    return {
      isEmpty: before.isEmpty && next.isEmpty,
      first: before.isEmpty ? [...before.first, ...next.first] : before.first,
      last: next.isEmpty ? [...before.last, ...next.last] : next.last,
    }
  }

  #link(last: readonly number[], first: readonly number[], text: string): void {
    for (const place of last)
      for (const next of first) {
        if (this.#nextOf(place).includes(next)) throw ambiguous(text)
        this.#nextOf(place).push(next)
      }
  }

  readonly #nextOf = (place: number): number[] => this.#next[place] ?? []
  readonly #at = (place: number): Characters => this.#characters[place] ?? 0n

  check(): void {
    const ways = [this.#first, ...this.#next].reduce((product, places) => product * this.#waysOn(places), 1)
    if (ways > maxWays)
      throw new Refused('May not match a text in very many ways: write alternatives that begin differently.')
    const places = [...this.#next.keys()]
    const reached = new Map(places.map((place) => [place, this.#reachedFrom(place)]))
    const loops = (one: number, other: number) => reached.get(one)?.has(other) && reached.get(other)?.has(one)
    const repeated = places.filter((place) => loops(place, place))
    for (const one of repeated) {
      const isWithin = (place: number) => loops(one, place) === true
      if (this.#isFound([one, one], [one, one], [isWithin, isWithin])) throw ambiguous(this.#texts[one] ?? '')
      for (const other of repeated) {
        if (!reached.get(one)?.has(other) || isWithin(other)) continue
        const isBetween = (place: number) => place === other || reached.get(place)?.has(other) === true
        const isAtEnd = (place: number) => loops(other, place) === true
        if (this.#isFound([one, one, other], [one, other, other], [isWithin, isBetween, isAtEnd]))
          throw ambiguous(`${this.#texts[one]} and ${this.#texts[other]}`)
      }
    }
  }

  /** The most of these places that may take the same character. */
  #waysOn(places: readonly number[]): number {
    const isShared = (place: number, index: number) =>
      places.some((other, before) => before < index && (this.#at(other) & this.#at(place)) !== 0n)
    return 1 + places.filter(isShared).length
  }

  #reachedFrom(place: number): ReadonlySet<number> {
    const found = new Set(this.#nextOf(place))
    for (const each of found) for (const next of this.#nextOf(each)) found.add(next)
    return found
  }

  /**
   * Whether one text leads from these places to those, each through places that fit; two that begin and end at the same place
   * must part.
   */
  #isFound(from: readonly number[], to: readonly number[], fit: readonly ((place: number) => boolean)[]): boolean {
    const parts = from.join() !== to.join()
    const seen = new Set<string>()
    const open = [{ places: from, hasParted: parts }]
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      let found: { places: readonly number[]; shared: Characters }[] = [{ places: [], shared: -1n }]
      for (const [index, place] of state.places.entries())
        found = found.flatMap(({ places, shared }) =>
          this.#nextOf(place)
            .filter((next) => fit[index]?.(next) && (shared & this.#at(next)) !== 0n)
            .map((next) => ({ places: [...places, next], shared: shared & this.#at(next) })),
        )
      for (const { places } of found) {
        this.#steps += 1
        if (this.#steps > maxSteps) throw new Refused('Is too complicated: write fewer repeats and alternatives.')
        const hasParted = state.hasParted || places[0] !== places[1]
        const name = `${places.join()} ${hasParted}`
        if (hasParted && places.join() === to.join()) return true
        if (seen.has(name)) continue
        seen.add(name)
        open.push({ places, hasParted })
      }
    }
    return false
  }
}
