import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The only file of the tests that reads the environment. */

/** Nothing may be skipped on CI: a missing program is an error there. */
export const onCi = ['1', 'true'].includes(process.env.CI ?? '')

/** The folder of the programs of another PostgreSQL than the shipped one, to test with. */
export const otherPostgres: string | undefined = process.env.POSTGRES_BIN

/** The first of these programs that is on the PATH; null when none is. */
export const findProgram = (...names: string[]): string | null => findPrograms(...names)[0] ?? null

/** All of them that are on the PATH. */
export function findPrograms(...names: string[]): string[] {
  const folders = new Set((process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== ''))
  return names.flatMap((name) => [...folders].map((folder) => join(folder, name))).filter(isProgram)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

const kept = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'SystemRoot']

/** The base environment of child processes, without the developer's settings. */
export const plainEnvironment = (): Record<string, string> => variablesOf((name) => kept.includes(name))

/** The same, with what npm needs to reach its registry: its own settings, and certificates. */
export const registryEnvironment = (): Record<string, string> =>
  variablesOf((name) => kept.includes(name) || name === 'NODE_EXTRA_CA_CERTS' || name.startsWith('npm_config_'))

const variablesOf = (isKept: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value !== undefined && isKept(name) ? [[name, value]] : [],
    ),
  )
