import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { reasonOf } from '../start-error.ts'
import { type Account, findOrMakeAccount, may } from './embedded/account.ts'

/**
 * A start as root continues as an ordinary user if the files allow it (docs/adr/0037-npm-start-leaves-root.md). Nothing in
 * DATA_DIR is touched before that: its owner could have put links there.
 */

const project = fileURLToPath(new URL('../../', import.meta.url))
const neededFiles = ['package.json', 'src/server.ts', 'src/db/generated/client.ts'].map((file) => join(project, file))
const firstOpenPort = 1_024

/** The user for a new DATA_DIR, when root owns the project. */
const accountName = 'gatewright'

/**
 * Drops the rights of root, for this process and those that it starts, in favour of the owner of DATA_DIR, or, when it is new, of
 * the owner of the project, or of the user `gatewright`, which is made when missing.
 *
 * @returns why this process still runs as root, with what to do about it; null when it does not
 */
export function leaveRoot({ dataDir, port }: { readonly dataDir: string; readonly port: number }): string | null {
  if (process.getuid?.() !== 0) return null
  try {
    return tryToLeave(dataDir, port)
  } catch (error) {
    // An error of DATA_DIR is reported when it is opened.
    return `${dataDir} cannot be used (${reasonOf(error)}).`
  }
}

function tryToLeave(dataDir: string, port: number): string | null {
  if (port < firstOpenPort)
    return `only root may use port ${port}: choose a PORT of ${firstOpenPort} or more, behind a proxy.`
  const found = statSync(dataDir, { throwIfNoEntry: false })
  const isNew = found === undefined || (found.uid === 0 && isEmpty(dataDir))
  if (!isNew && found.uid === 0) return `root owns ${dataDir} (docs/operations.md says how to change that).`
  const account = isNew ? ordinaryAccount() : found
  if (account === null) return `a user ${accountName} could not be made: start it as an ordinary user.`
  const { uid, gid } = account
  if (!hasName(uid)) return `user ${uid}, who owns ${dataDir}, has no name on this system: make that user.`
  if (!may(account, 'r', ...neededFiles) || !may(account, 'x', process.execPath))
    return `user ${uid} cannot read ${project}: move it to a folder that every user may enter.`
  if (isNew) {
    mkdirSync(dataDir, { recursive: true })
    chownSync(dataDir, uid, gid)
  }
  if (!may(account, 'w', dataDir)) {
    if (isNew) chownSync(dataDir, 0, 0)
    return `user ${uid} cannot enter a folder above ${dataDir}: choose a DATA_DIR in one that every user may enter.`
  }
  if (isNew) chmodSync(dataDir, 0o700)
  process.setgroups?.([gid])
  process.setgid?.(gid)
  process.setuid?.(uid)
  return null
}

function ordinaryAccount(): Account {
  const { uid, gid } = statSync(project)
  return uid === 0 || !hasName(uid) ? findOrMakeAccount(accountName) : { uid, gid }
}

/** Whether a user has a name. PostgreSQL does not run as a user without one. */
const hasName = (uid: number) => spawnSync('id', ['-un', String(uid)]).status === 0

const isEmpty = (folder: string) => statSync(folder).isDirectory() && readdirSync(folder).length === 0
