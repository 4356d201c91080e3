import { expect } from 'vitest'
import { type Installation, installation } from './installation.ts'
import { type Running, run } from './processes.ts'

type Env = Readonly<Record<string, string>>
type Outcome = { readonly code: number | null; readonly output: string }

/** An installation whose API listens, and programs that talk to it. */
export type Listening = {
  readonly on: Installation
  /** `http://127.0.0.1:9000` */
  readonly address: string
  start(args: readonly string[], env?: Env): Running
  /** @returns when the program has ended */
  gatewright(args: readonly string[], env?: Env): Promise<Outcome>
}

/** @param env of each program, beside `GATEWRIGHT_URL`. @param program a file of the project */
export async function listening(env: Env, program = 'bin/gatewright.mjs'): Promise<Listening> {
  const on = await installation()
  const address = await on.app.listen({ port: 0, host: '127.0.0.1' })
  const start: Listening['start'] = (args, more = {}) =>
    run(program, { args: [...args], env: { GATEWRIGHT_URL: address, ...env, ...more } })
  return {
    on,
    address,
    start,
    gatewright: async (args, more) => {
      const running = start(args, more)
      const { code } = await running.exited
      return { code, output: running.output() }
    },
  }
}

/** Expects that a program ends with this code, and that its output has this text, or matches. */
export async function exited(
  code: number,
  ending: Outcome | Promise<Outcome>,
  output: string | RegExp = '',
): Promise<Outcome> {
  const outcome = await ending
  expect(outcome.code, outcome.output).toBe(code)
  expect(outcome.output).toMatch(output)
  return outcome
}
