import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { type Blueprint, documentLimits, KeyOf } from '../../src/document/document.ts'
import { parse, print } from '../../src/document/yaml.ts'
import { costOf, longestTurnCost } from '../support/cpu-time.ts'
import { parseSent } from '../support/parse-sent.ts'

/** Documents of just under 8 MiB, each of which made the parser keep something for every few bytes. */
const size = documentLimits.bytes - 200
const repeated = (text: string, bytes = size) => text.repeat(bytes / text.length)
const nodes = 'holds more than 600000 nodes'
const breaks = 'holds more than 600000 line breaks and backslashes'
const large: Record<string, [text: string, why: string]> = {
  'a flow list': [`a: [${repeated('1,')}]`, nodes],
  'a flow list of lists': [`a: [${repeated('[],')}]`, nodes],
  'a flow list of texts': [`a: [${repeated('"x",')}]`, nodes],
  'flow mappings': [`${'{'.repeat(30)}${repeated('a,')}`, nodes],
  'a list of tags': [`a: [${repeated('!KeyOf x,')}]`, nodes],
  'entries on one line each': [`entries: [${repeated('{model: a, identifiers: {}},')}]`, nodes],
  'a block list': [repeated('- a\n'), breaks],
  'a block list of nothing': [repeated('-\n'), breaks],
  'a block mapping': [repeated('a:\n'), breaks],
  'keys without values': [repeated('?\n'), breaks],
  documents: [repeated('---\n'), breaks],
  'ends of documents': [repeated('...\n'), breaks],
  directives: [repeated('%a\n'), breaks],
  anchors: [repeated('- &a 1\n'), breaks],
  'a folded text': [`a: >\n${repeated(' x\n')}`, breaks],
  'a literal text': [`a: |\n${repeated(' x\n')}`, breaks],
  'a plain text of many lines': [`a: ${repeated('x\n ')}`, breaks],
  'a quoted text of escapes': [`a: "${repeated('\\n')}"`, breaks],
  'old ends of lines': [repeated('- a\r'), breaks],
}

describe('8 MiB that the parser would unfold', () => {
  test.each(Object.entries(large))('%s is refused at little cost', (_, [there, why]) => {
    const refusal = expect.objectContaining({ fields: { blueprint: [`The blueprint ${why}.`] } })
    expect(costOf(() => expect(() => parseSent(there)).toThrow(refusal), { enough: 15 })).toBeLessThan(15)
  })

  test('each fits into 256 MB of memory', async () => {
    const work = `
      const { parentPort, workerData } = require('node:worker_threads')
      import(workerData.module).then(({ parseSent }) => parentPort.on('message', (text) => {
        try { parseSent(text) } catch (error) { parentPort.postMessage(error.fields?.blueprint[0] ?? error.stack) }
      }))`
    const workerData = { module: new URL('../support/parse-sent.ts', import.meta.url).href }
    // An isolate that reaches the limit ends with ERR_WORKER_OUT_OF_MEMORY.
    const resourceLimits = { maxOldGenerationSizeMb: 250, maxYoungGenerationSizeMb: 6 }
    const worker = new Worker(work, { eval: true, workerData, resourceLimits, execArgv: [] })
    try {
      for (const [there, why] of Object.values(large)) {
        worker.postMessage(there)
        expect(await once(worker, 'message')).toEqual([`The blueprint ${why}.`])
      }
    } finally {
      await worker.terminate()
    }
  })

  test('a stored document of many lines is parsed: it was a small JSON body', async () => {
    const attrs = { expressions: Array.from({ length: 5 }, () => 'x\n'.repeat(150_000)) }
    const entries = [{ model: 'm', state: 'present', identifiers: {}, attrs } as const]
    const there: Blueprint = { version: 1, metadata: { name: 'a' }, entries }
    expect(await parse(print(there))).toStrictEqual(there)
  })
})

test('a stored document of 5 000 entries is parsed in turns', async () => {
  const entries = Array.from({ length: 5_000 }, (_, index) => ({
    ...({ model: 'm', state: 'present', identifiers: { name: `n${index}` } } as const),
    attrs: { text: '\nentries:\n- {', list: [1, { a: null }], refers: new KeyOf('x') },
  }))
  const there: Blueprint = { version: 1, metadata: { name: 'a' }, entries }
  const text = print(there)
  const whole = await longestTurnCost(async () => parseSent(text))
  let parsed: Blueprint | undefined
  const costs: number[] = []
  // A collection of garbage may fall into one turn.
  for (let tries = 0; tries < 3; tries += 1)
    costs.push(
      await longestTurnCost(async () => {
        parsed = await parse(text)
      }),
    )
  expect(parsed).toStrictEqual(there)
  expect(Math.min(...costs)).toBeLessThan(whole / 2)
})
