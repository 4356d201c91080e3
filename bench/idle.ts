import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { cpuSeconds } from './cpu.ts'
import { type BackendKind, openDatabase, openStand } from './stand.ts'

/** The cost of an idle installation: CPU time of each process, and memory of API and worker. */

export const usage = `npm run bench -- idle [options]
  --backend <redis|postgres|both>  where the queue lives (both)
  --seconds <n>                    to measure, after as long again of rest (30)`

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { backend: { type: 'string', default: 'both' }, seconds: { type: 'string', default: '30' } },
  })
  const seconds = Number(values.seconds)
  if (!(seconds >= 1 && seconds <= 3_600)) throw new Error('--seconds takes a number from 1 to 3600')
  const backends = (['redis', 'postgres'] as const).filter((kind) => ['both', kind].includes(values.backend))
  if (backends.length === 0) throw new Error(`--backend ${values.backend}: it takes redis, postgres or both`)
  for (const kind of backends) await measureIdle(kind, seconds)
}

async function measureIdle(kind: BackendKind, seconds: number): Promise<void> {
  const server = await openDatabase(undefined)
  const stand = await openStand(server, kind)
  try {
    await setTimeout(seconds * 1_000)
    const processes = Object.entries(stand.processes)
    const before = processes.map(([, pid]) => cpuSeconds(pid))
    await setTimeout(seconds * 1_000)
    let sum = 0
    const texts = processes.map(([name, pid], index) => {
      const ms = ((cpuSeconds(pid) - (before[index] ?? Number.NaN)) * 1_000) / seconds
      sum += ms
      return `${name} ${ms.toFixed(1)} ms/s, ${memoryMb(pid)} MB`
    })
    console.log(`queue on ${kind}: ${texts.join('; ')}; together ${sum.toFixed(1)} ms of CPU a second`)
  } finally {
    await stand.close()
    await server.close()
  }
}

function memoryMb(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kilobytes) / 1_024)
}
