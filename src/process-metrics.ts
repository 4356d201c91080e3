import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import manifest from '../package.json' with { type: 'json' }

export type PoolUse = {
  readonly inUse: number
  readonly idle: number
  /** Connections that the pool may still open. */
  readonly unopened: number
  /** Statements and transactions that wait for a connection. */
  readonly waiting: number
}

type Process = {
  readonly program: 'api' | 'worker'
  readonly runFormat: number
  readonly pool: () => PoolUse
}

/**
 * Gauges of prom-client with names of counters: `promtool check metrics` refuses them, and other metrics have the same values.
 */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

/**
 * Opens a registry with the metrics of a process, API or worker. Each process has its own, so that two in one process are counted
 * apart.
 */
export function openRegistry({ program, runFormat, pool }: Process): Registry {
  const registry = new Registry()
  const registers = [registry]
  // Milliseconds. The default of 10 causes most of an idle API's CPU time.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
  for (const name of misnamed) registry.removeSingleMetric(name)
  new Gauge({
    name: 'gatewright_build_info',
    help: 'Always 1. The version of the process, and the format of runs that it knows.',
    labelNames: ['program', 'version', 'run_format'],
    registers,
  }).set({ program, version: manifest.version, run_format: runFormat }, 1)
  new Gauge({
    name: 'gatewright_pool_connections',
    help: 'Connections of this process to PostgreSQL; unopened: how many more it may open.',
    labelNames: ['state'],
    registers,
    collect() {
      const { inUse, idle, unopened } = pool()
      this.set({ state: 'in_use' }, inUse)
      this.set({ state: 'idle' }, idle)
      this.set({ state: 'unopened' }, unopened)
    },
  })
  new Gauge({
    name: 'gatewright_pool_waiting',
    help: 'Statements and transactions of this process that wait for a connection to PostgreSQL.',
    registers,
    collect() {
      this.set(pool().waiting)
    },
  })
  return registry
}
