import { expect, test } from 'vitest'
import { judgeWorkers } from '../../src/queue/judge-workers.ts'

/** An API of format 3. Formats by seconds since a worker of theirs took a job. */
const judge = (consumed: Record<number, number | null>, waiting: Record<number, number> = {}) =>
  judgeWorkers(
    [...new Set([...Object.keys(consumed), ...Object.keys(waiting)])].map((format) => ({
      format: Number(format),
      consumedS: consumed[Number(format)] ?? null,
      waitingS: waiting[Number(format)] ?? null,
    })),
    3,
  )

test.each([
  ['its own', { 3: 1 }, {}, true, /^A worker takes jobs\.$/],
  ['newer ones', { 4: 1 }, {}, true, /^A worker takes jobs\.$/],
  ['older ones, of which none was seen lately', { 1: 60, 2: 60, 3: 1 }, {}, true, /^A worker takes jobs\.$/],
  [
    'only older ones',
    { 2: 1 },
    {},
    false,
    /^Only workers .* older version \(format 2, .* format 3\): replace the workers first/,
  ],
  ['own ones that are gone, and older ones', { 2: 1, 3: 12 }, {}, false, /^Only workers .* replace the workers first/],
  [
    'older ones that leave newer runs alone',
    { 2: 1, 3: 1 },
    {},
    true,
    /^Workers take jobs\. Some .* replace the workers first/,
  ],
  ['older ones that do not', { 1: 1, 3: 1 }, {}, false, /^Beside the workers .*format 1, .* replace the workers first/],
  [
    'a newer one that waits',
    {},
    { 4: 1 },
    false,
    /^A worker of a newer version waits .*format 4, .* replace an API first/,
  ],
  ['own ones, and a newer one that waits', { 3: 1 }, { 4: 1 }, true, /^Workers take jobs\. .* replace an API first/],
  ['a newer one that waited', { 3: 1 }, { 4: 20 }, true, /^A worker takes jobs\.$/],
  ['none ever', {}, {}, false, /^No worker has ever taken a job/],
  ['none for 12 s', { 2: 30, 3: 12 }, {}, false, /^No worker has taken a job for 12 s/],
])('workers: %s', (_, consumed, waiting, ok, detail) => {
  const isBehind = /^\^(Only|Beside)/.test(detail.source)
  expect(judge(consumed, waiting)).toEqual({ ok, detail: expect.stringMatching(detail), ...(isBehind && { isBehind }) })
})
