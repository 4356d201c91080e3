import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { connect } from '../../src/db/client.ts'
import { atEnd, freePort, freshFolder, needs, run, until, wideEnv } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, put } from './clients.ts'
import { blamed, untilReady } from './readiness.ts'
import { recordRecovery } from './record.ts'

/** A disk that is really full, below `npm start`: PostgreSQL with its log, its tables and the queue. */

/** Longer than the 11 s after which a worker is missed. */
const fullForMs = 20_000
const noticedAfterMs = 3_000

/** A file system of its own, which only root may make. */
function smallDisk(): string {
  const disk = join(freshFolder(), 'disk')
  mkdirSync(disk)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=300m,mode=0755', 'tmpfs', disk])
  atEnd(() => void execFileSync('umount', ['--lazy', disk]))
  return disk
}

/** Writes until nothing more fits. */
function fill(file: string): void {
  for (let size = 1_048_576; size >= 4_096; size = size === 1_048_576 ? 4_096 : 0)
    try {
      for (;;) writeFileSync(file, Buffer.alloc(size), { flag: 'a' })
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENOSPC' })
    }
}

function databaseUrl(dataDir: string): string {
  const [, , , port] = readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')
  const password = readFileSync(join(dataDir, 'postgres-password'), 'utf8').trim()
  return `postgresql://gatewright:${password}@127.0.0.1:${port}/gatewright`
}

/** `npm start` on a disk of its own. */
async function startOnDisk() {
  const disk = smallDisk()
  const [dataDir, filler] = [join(disk, 'data'), join(disk, 'filler')]
  const port = await freePort()
  const target = { url: `http://127.0.0.1:${port}`, token: 'the-token-of-the-test-of-full-disks' }
  const env = { ...wideEnv, DATA_DIR: dataDir, PORT: String(port), BOOTSTRAP_TOKEN: target.token }
  const service = run('src/standalone/main.ts', { env })
  await service.line(/Ctrl-C stops everything/, { withinMs: 60_000 })
  const { db } = connect(databaseUrl(dataDir), { applicationName: 'gatewright-test', max: 2 })
  atEnd(() => db.$disconnect())
  return { target, service, db, filler }
}

describe.runIf(needs('root'))('npm start on a full disk', () => {
  test('answers are true, readiness names the disk and never the worker, and it recovers by itself', {
    timeout: 120_000,
  }, async () => {
    const { target, service, db, filler } = await startOnDisk()
    const before = await crowd(target, 4, 'before', (begun) => begun >= 50)

    let over = false
    fill(filler)
    const sending = crowd(target, 4, 'full', () => over)
    await delay(noticedAfterMs)
    const blaming = blamed(target, () => over)
    for (const endsAt = performance.now() + fullForMs; performance.now() < endsAt; await delay(1_000)) fill(filler)
    over = true
    const [whileFull, details] = await Promise.all([sending, blaming])
    truncateSync(filler)
    const recoveredMs = await untilReady(target)
    recordRecovery(recoveredMs)
    const after = await crowd(target, 4, 'after', (begun) => begun >= 50)

    console.log(`disk full: ${describeTimes(whileFull)}; ready again after ${Math.round(recoveredMs)} ms`)
    expect([...details]).toContain('PostgreSQL answers, but accepts no changes: its disk is full.')
    expect([...details].filter((detail) => /No worker/.test(detail))).toEqual([])
    expect(whileFull.filter(({ status }) => ![200, 202, 503].includes(status ?? 0))).toEqual([])
    expect(whileFull.filter(({ status }) => status === 503).length).toBeGreaterThan(10)
    expect(after.filter(({ status }) => status !== 200)).toEqual([])
    const log = [...before, ...whileFull, ...after, await put(target, 'last')]
    expect(await audit(db, log)).toEqual([])
    await service.stop()
  })

  test('PostgreSQL, which ends when its log needs another file, is started again when there is room', {
    timeout: 120_000,
  }, async () => {
    const { target, service, db, filler } = await startOnDisk()
    const log = await crowd(target, 4, 'before', (begun) => begun >= 20)
    fill(filler)
    const ended = service.line(/PostgreSQL has ended: its disk is full/, { withinMs: 40_000 })
    let hasEnded = false
    void ended.then(
      () => {
        hasEnded = true
      },
      () => {},
    )
    while (!hasEnded) {
      await db.$queryRawUnsafe('SELECT pg_switch_wal()::text').catch(() => {})
      log.push(await put(target, 'full'))
      fill(filler)
    }
    await ended
    log.push(await put(target, 'meanwhile'))
    truncateSync(filler)
    const recoveredMs = await untilReady(target)
    recordRecovery(recoveredMs)
    // The API may have missed the worker for more than 10 s, and refuses until the worker's next look at the queue.
    const isApplied = async () => {
      log.push(await put(target, 'again'))
      return log.at(-1)?.status === 200
    }
    await until('a PUT that is applied', isApplied)
    log.push(...(await crowd(target, 4, 'after', (begun) => begun >= 20)))
    console.log(`PostgreSQL ended: ${describeTimes(log)}; ready again after ${Math.round(recoveredMs)} ms`)
    expect(log.filter(({ status }) => ![200, 202, 503].includes(status ?? 0))).toEqual([])
    expect(log.at(-1)?.status).toBe(200)
    expect(await audit(db, log)).toEqual([])
    await service.stop()
  })
})
