import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createVitest, type TestModule } from 'vitest/node'
import { mutated } from './generate.ts'
import type { Answer, Failure, Question } from './talk.ts'

/**
 * A process in a copy of the project. It starts PostgreSQL and Redis once, and for each question changes one file, runs
 * the tests and writes the file as it was.
 */

const root = process.cwd()
const vitest = await createVitest('test', {
  root,
  run: true,
  watch: false,
  project: 'behaviour',
  isolate: true,
  bail: 1,
  maxWorkers: 1,
  silent: true,
  reporters: [{}],
})
await vitest.standalone()
const specifications = new Map(
  (await vitest.globTestSpecifications()).map((each) => [each.moduleId.slice(root.length + 1), each]),
)

process.on('message', (question: Question) => {
  answer(question).then(
    (failure) => process.send?.({ failure } satisfies Answer),
    (error: unknown) => process.send?.({ error: String(error) } satisfies Answer),
  )
})
process.on('disconnect', () => void vitest.close().finally(() => process.exit()))
process.send?.('ready')

async function answer({ mutant, tests }: Question): Promise<Failure | null> {
  if (mutant === undefined) return run(tests)
  const path = join(root, mutant.file)
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, mutated(text, mutant))
  vitest.invalidateFile(path)
  try {
    return await run(tests)
  } finally {
    writeFileSync(path, text)
    vitest.invalidateFile(path)
  }
}

async function run(tests: readonly string[]): Promise<Failure | null> {
  for (const file of tests) {
    const specification = specifications.get(file)
    if (specification === undefined) throw new Error(`${file} is no test file of npm test`)
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications([specification])
    // Vitest also returns the files of earlier runs, as they ended then.
    const module = testModules.find(({ moduleId }) => moduleId === specification.moduleId)
    if (module === undefined) throw new Error(`${file} did not run`)
    const [error] = unhandledErrors
    const how = failureOf(module) ?? (error === undefined ? null : String(error))
    if (how !== null) return { file, how: how.slice(0, 200) }
  }
  return null
}

function failureOf(module: TestModule): string | null {
  if (module.ok()) return null
  const [failed] = [...module.children.allTests('failed')]
  if (failed !== undefined) return `${failed.fullName}: ${failed.result().errors?.[0]?.message.split('\n', 1)}`
  const errors = [...module.children.allSuites()].flatMap((suite) => suite.errors())
  return [...module.errors(), ...errors][0]?.message.split('\n', 1).join() ?? 'it did not run'
}
