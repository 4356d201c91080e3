import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { findProgram } from '../support/environment.ts'
import { freshFolder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { run } from '../support/processes.ts'
import { until } from '../support/until.ts'

/**
 * Starts HAProxy with the file of docker-compose.yml.
 *
 * @param apis the ports of the APIs
 * @returns its address
 */
export async function startShippedProxy(apis: readonly number[]): Promise<string> {
  const port = await freePort()
  const shipped = readFileSync(new URL('../../deploy/haproxy.cfg', import.meta.url), 'utf8')
  const own = shipped
    .replace('bind :9080', `bind 127.0.0.1:${port}`)
    .replace(/(server api-(\d)) \S+/g, (_, server, number) => `${server} 127.0.0.1:${apis[Number(number) - 1]}`)
  const folder = freshFolder()
  writeFileSync(join(folder, 'haproxy.cfg'), own)
  const script = join(folder, 'start.sh')
  writeFileSync(script, `exec ${findProgram('haproxy')} -f ${folder}/haproxy.cfg`)
  const proxy = run(script, { node: '/bin/sh' })
  onTestFinished(async () => void (await proxy.kill()))
  const url = `http://127.0.0.1:${port}`
  const answers = () =>
    fetch(`${url}/-/health/live/`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until('the proxy to answer', answers)
  return url
}
