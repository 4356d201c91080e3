import { isObject } from '../json-object.ts'

/** The user's own https picture, or else its initials as SVG. No other server is contacted. */

/** The colours are dark enough for white letters. */
const colours = ['#4a6fa5', '#7a5195', '#ad5d4e', '#3f7d58', '#8a6d3b', '#53648c', '#96527d', '#2f7f86']

/** @returns an https URL, or a data URI with an SVG of 64 by 64 */
export function avatarOf(name: string, attributes: unknown): string {
  const own = isObject(attributes) && attributes.avatar
  if (typeof own === 'string' && own.length <= 2_000 && /^https:\/\//i.test(own) && URL.canParse(own)) return own
  return draw(name)
}

function draw(name: string): string {
  const words = name
    .trim()
    .split(/[\s._@-]+/u)
    .filter((word) => word !== '')
  const initials = [words[0], words.length > 1 ? words.at(-1) : undefined]
    .map((word) => [...(word ?? '')][0] ?? '')
    .join('')
    .toUpperCase()
  const sum = [...name].reduce((total, letter) => total + (letter.codePointAt(0) ?? 0), 0)
  // Only letters and digits are kept: no markup, and no control characters, which XML cannot hold.
  const text = initials.replace(/[^\p{L}\p{N}]/gu, '')
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><rect width="64" height="64" fill="${colours[sum % colours.length]}"/><text x="32" y="41" font-family="sans-serif" font-size="26" fill="#fff" text-anchor="middle">${text}</text></svg>`
  return `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`
}
