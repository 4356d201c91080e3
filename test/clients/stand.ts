import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import type { Db } from '../../src/db/client.ts'
import { freePort } from '../support/free-port.ts'
import { freshFolder, installation } from '../support/kit.ts'
import { schemaPath } from '../support/openapi.ts'

/** What the tests of generated clients share: a service to call, its document in a file, and programs with a time limit. */

const execute = promisify(execFile)

export type Stand = {
  readonly url: string
  readonly db: Db
  /** It has the document as `schema.json`. */
  readonly folder: string
  /** Runs in a folder below `folder`. It has the registries' configuration of the machine. @throws after three minutes */
  run(program: string, args: string[], below?: string): Promise<Output>
}

type Output = { readonly stdout: string; readonly stderr: string }

export async function openStand(): Promise<Stand> {
  const folder = freshFolder()
  const { app, db } = await installation()
  const url = await app.listen({ host: '127.0.0.1', port: await freePort() })
  writeFileSync(join(folder, 'schema.json'), await (await fetch(`${url}${schemaPath}`)).text())
  const run: Stand['run'] = async (program, args, below = '.') => {
    const options = { cwd: join(folder, below), timeout: 400_000, maxBuffer: 16_000_000 }
    return await execute(program, args, options).catch((error: Error & Output) => {
      throw new Error(`${error.message}\n${error.stdout.slice(-4_000)}`, { cause: error })
    })
  }
  return { url, db, folder, run }
}

/** Installs Python packages in a folder of their own. @returns the path of one of their programs */
export async function pythonPackages({ folder, run }: Stand, packages: string[]): Promise<(program: string) => string> {
  const path = (program: string) => join(folder, 'venv/bin', program)
  await run('python3', ['-m', 'venv', join(folder, 'venv')])
  await run(path('pip'), ['install', '--quiet', '--disable-pip-version-check', ...packages])
  return path
}

/**
 * The first PUT has most fields with other values than their defaults. The second has the required ones: it changes
 * nothing, unless the client sends what it was not given. The third does not wait, and the client tells its 202 from a 200. Then
 * come a set of two, and lists: of a provider of several kinds, a field that its own kind has.
 *
 * @param printed what `drive` printed
 */
export async function expectDriven(printed: string, name: string, db: Db): Promise<void> {
  const created = (name: string) => [
    expect.stringMatching(`^provider oauth2 "${name}" created`),
    expect.stringMatching(`^application "${name}" created`),
  ]
  const driven: { accepted: string } = JSON.parse(printed)
  expect(driven).toEqual({
    first: created(name),
    second: [`provider oauth2 "${name}" unchanged`, `application "${name}" unchanged`],
    accepted: expect.stringMatching(/^\/api\/v3\/blueprints\/runs\/[0-9a-f-]{36}\/$/),
    set: [...created(`${name}-a`), ...created(`${name}-b`)],
    users: await db.user.count(),
    providers: [[name, 'public']],
  })
  const id = driven.accepted.split('/').at(-2) ?? ''
  expect(await db.run.findUnique({ where: { id } })).toMatchObject({ slug: `${name}-later` })
}
