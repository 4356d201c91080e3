import { expect, test } from 'vitest'
import { freshDatabase, run } from '../support/kit.ts'

test.each([
  ['files', 'EMFILE'],
  ['program', 'ENOENT'],
])(
  'a worker that was killed, and cannot be started for want of %s, is started later',
  {
    timeout: 120_000,
  },
  async (want, code) => {
    const { url } = await freshDatabase()
    const env = { DATABASE_URL: url, SECRET_KEY: 'a secret key for tests, 32 or more' }
    const supervisor = run('test/standalone/supervised.ts', { args: [want], env })
    const [, first] = await supervisor.line(/"pid":(\d+).*"msg":"worker ready"/)

    supervisor.signal('SIGUSR2')
    await supervisor.line(/^starved/)
    process.kill(Number(first), 'SIGKILL')
    await supervisor.line(/^The worker ended \(SIGKILL\); it is started again( in 0\.2 s)?\.$/)
    // The wait doubles while no worker takes a job.
    await supervisor.line(
      new RegExp(`^The worker could not be started \\(${code}\\); it is started again in 0\\.4 s\\.$`),
    )
    await supervisor.line(
      new RegExp(`^The worker could not be started \\(${code}\\); it is started again in 0\\.8 s\\.$`),
    )

    supervisor.signal('SIGUSR2')
    const [, second] = await supervisor.line(new RegExp(`"pid":(?!${first}\\b)(\\d+).*"msg":"worker ready"`))
    expect(Number(second)).toBeGreaterThan(0)
    expect(await supervisor.stop()).toEqual({ code: 0, signal: null })
  },
)

test('a shutdown does not wait for the next start of a worker', async () => {
  const { url } = await freshDatabase()
  const env = { DATABASE_URL: url, SECRET_KEY: 'a secret key for tests, 32 or more' }
  const supervisor = run('test/standalone/supervised.ts', { args: ['program'], env })
  const [, worker] = await supervisor.line(/"pid":(\d+).*"msg":"worker ready"/)
  supervisor.signal('SIGUSR2')
  await supervisor.line(/^starved/)
  process.kill(Number(worker), 'SIGKILL')
  await supervisor.line(/^The worker could not be started \(ENOENT\); it is started again in 1\.6 s\.$/)
  expect(await supervisor.stop({ withinMs: 1_000 })).toEqual({ code: 0, signal: null })
})

test('a worker that never starts fails the start', async () => {
  const env = { DATABASE_URL: 'postgresql://127.0.0.1:1/none', SECRET_KEY: 'a secret key for tests, 32 or more' }
  const supervisor = run('test/standalone/supervised.ts', { args: ['files'], env })
  expect(await supervisor.exited).toMatchObject({ code: 1 })
  const away = 'The database is away. Try again shortly. (ECONNREFUSED)'
  expect(supervisor.output()).toContain(
    `The worker does not start: it ended (exit code 1). Its last output:\n${away}\n${away}\n${away}\n`,
  )
})
