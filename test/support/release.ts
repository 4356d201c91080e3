import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The last release, as CHANGELOG.md names it. */
export function lastRelease(): { readonly version: string; readonly commit: string } {
  const heading = /^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d \(commit ([0-9a-f]{7,40})\)$/m
  const [, version = '', commit = ''] = heading.exec(readFileSync(`${root}CHANGELOG.md`, 'utf8')) ?? []
  return { version, commit }
}

/** The commit of the last release, where this repository's history has it; null in a shallow clone. */
export function releaseInHistory(): string | null {
  const { commit } = lastRelease()
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root, stdio: 'ignore' })
    return commit
  } catch {
    return null
  }
}
