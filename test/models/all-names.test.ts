import { expect, test } from 'vitest'
import { comparedName } from '../../src/names.ts'
import { freshDatabase } from '../support/database.ts'

test('PostgreSQL and the product compare names alike, over all characters that both know', async () => {
  const { db } = await freshDatabase()
  const letters = Array.from({ length: 0x110000 }, (_, code) => code)
    .filter((code) => code > 0 && (code < 0xd800 || code > 0xdfff))
    .map((code) => String.fromCodePoint(code))
    // Each tenth is enough of those that are one letter in one case, such as ideographs and unassigned ones.
    .filter((letter, code) => comparedName(letter) !== letter || letter !== letter.toUpperCase() || code % 10 === 0)
    .flatMap((letter) => [letter, `A ${letter} b`, `ss${letter}\u0345\u0301`])
  for (let from = 0; from < letters.length; from += 5_000) {
    const rows = await db.$queryRawUnsafe<{ sent: string; compared: string; again: string }[]>(
      `SELECT sent, compared_name(sent) AS compared, compared_name(compared_name(sent)) AS again
        FROM unnest($1::text[]) sent WHERE unicode_assigned(sent)`,
      letters.slice(from, from + 5_000),
    )
    const other = rows.filter(({ sent, compared }) => comparedName(sent) !== compared)
    expect(other.map(({ sent, compared }) => [spelt(sent), spelt(comparedName(sent)), spelt(compared)])).toEqual([])
    expect(rows.filter(({ compared, again }) => compared !== again).map(({ sent }) => spelt(sent))).toEqual([])
  }
})

const spelt = (text: string) => [...text].map((each) => each.codePointAt(0)?.toString(16)).join(' ')
