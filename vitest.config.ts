import { defineConfig } from 'vitest/config'
import { onCi } from './test/support/environment.ts'

const faults = 'test/faults/**/*.test.ts'
/** Those that mostly wait for a limit of the product, or have few clients and bounds that leave much room. */
const roomy = [
  'test/faults/{changed-meanwhile,clocks,connections-silent,database-crashed,database-full}.test.ts',
  'test/faults/{database-stuck,disk-full,queue-unwilling,record-late,redis-groups,retries}.test.ts',
  'test/faults/{stopping,worker-halfway}.test.ts',
]
const timing = 'test/timing/**/*.test.ts'
/** Files that install the command line program by npm. */
const packed = ['test/packed/**/*.test.ts', 'test/e2e/repository/*.test.ts']
const clients = 'test/clients/**/*.test.ts'
/** Needs Helm, which Go builds, and schemas of Kubernetes. */
const chart = 'test/chart/helm.test.ts'
/** Starts of whole programs: servers, the CLI, Chromium. */
const e2e = [
  'test/e2e/**/*.test.ts',
  'test/standalone/**/*.test.ts',
  'test/upgrade/**/*.test.ts',
  'test/cli/{apply,cancel,closed-pipe,database,diff-all,export,export-folder,folder,former-run,gatewright,import}.test.ts',
  'test/api/consumers/two-servers.test.ts',
  'test/cli/{counts,kept-secrets,migration,outputs,proxy,unset}.test.ts',
  'test/cli/{id-token,owners,places,project,restart,runs,seed,shared-entries,snippets,stacks,tags,words}.test.ts',
  'test/cli/round-trip/round-trip.test.ts',
  'test/queue/worker-metrics.test.ts',
  'test/rig.test.ts',
  'test/scripts/install.test.ts',
  'test/browser/{dashboard,docs,home,keyboard,live,pages,planted-faults,questions,roll-back}.test.ts',
]
/** Minutes of random calls. */
const onlyRandom = [
  'test/api/random-requests.test.ts',
  'test/cli/round-trip/random.test.ts',
  'test/rights/{random,secrets}.test.ts',
  'test/api/authorization/applies.test.ts',
]
/** Random and concurrent calls, of which `npm test` plays a few rounds and `npm run random` twenty times as many. */
const random = [
  ...onlyRandom,
  'test/api/{groups-write,plans,plans-again,transactional-random,writes-random}.test.ts',
  'test/apply/{sets,write}.test.ts',
  'test/document/yaml.test.ts',
  'test/rights/{gains,last-superuser}.test.ts',
]

/** All rights by every kind of caller, very many rows, slow readers, all characters, attacks, waits, what an apply costs: minutes. */
const wide = [
  'test/api/authorization/{blueprints,bonds,dashboard,groups,objects,owners,reads,tokens}.test.ts',
  'test/api/lists/{many,slow-reader,values}.test.ts',
  'test/api/{exchange-attacks,jobs-of-runs,one-callers-load,operations-answers,operations-runs,why}.test.ts',
  'test/dashboard/sizes.test.ts',
  'test/exchange/issuer-keys.test.ts',
  'test/models/all-names.test.ts',
  'test/queue/turns-of-sets.test.ts',
  'test/rights/trusted-issuers.test.ts',
  'test/runs/cost-of-an-apply.test.ts',
  'test/simulation/simulation.test.ts',
]

/** Where the product's own limit on answers of the database would measure the machine. */
const patient = 'test/support/patient.ts'
const sameDraws = 'test/support/same-draws.ts'

export default defineConfig({
  test: {
    environment: 'node',
    globalSetup: ['test/support/servers.ts'],
    setupFiles: ['test/support/setup.ts'],
    // Real processes, sockets and signals.
    pool: 'forks',
    // The files of a process share its modules: loading them for each file took as long as the tests.
    isolate: false,
    // Limits against hanging, on a machine that does other work too.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    restoreMocks: true,
    expect: { requireAssertions: true },
    provide: { transactions: 'prisma', rounds: 0.25 },
    projects: [
      {
        extends: true,
        test: {
          name: 'behaviour',
          include: ['test/**/*.test.ts'],
          setupFiles: [patient, sameDraws],
          exclude: [faults, timing, ...packed, clients, chart, ...e2e, ...onlyRandom, ...wide],
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // What tests the worker's own transactions (src/db/pipeline.ts); test/db/engine-tx.test.ts does so for both by itself.
        extends: true,
        test: {
          name: 'pipelined',
          include: ['test/apply/sets.test.ts', 'test/runs/work.test.ts'],
          setupFiles: [patient, sameDraws],
          provide: { transactions: 'pipelined' },
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'e2e',
          // Programs have the product's own limits on answers, which a busy machine exceeds now and then.
          retry: onCi ? 1 : 0,
          include: e2e,
          exclude: packed,
          setupFiles: [patient, sameDraws],
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'wide',
          // A thousand requests at once meet the product's own limits on a busy machine, too.
          retry: onCi ? 1 : 0,
          include: wide,
          setupFiles: [patient, sameDraws],
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'random',
          include: random,
          // New values each time. In CI the same, and fewer: it fails because of a change, never because of luck.
          setupFiles: onCi ? [patient, sameDraws] : [patient],
          provide: { rounds: onCi ? 1 : 5 },
          testTimeout: 1_200_000,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // They measure time and memory, so nothing else may run beside them.
        extends: true,
        test: {
          name: 'timing',
          // The machine of CI may be one that others share.
          retry: onCi ? 1 : 0,
          include: [timing],
          isolate: true,
          fileParallelism: false,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        // It needs the package registry.
        extends: true,
        test: { name: 'packed', include: packed, sequence: { groupOrder: 2 } },
      },
      {
        // They install generators from package registries.
        extends: true,
        test: { name: 'clients', include: [clients], maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
      {
        // It builds Helm, the first time.
        extends: true,
        test: {
          name: 'chart',
          include: [chart],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // They bound how long clients wait while parts die: nothing else may run beside them.
        extends: true,
        test: {
          name: 'faults',
          // A time that a busy machine exceeds is tried again. A promise that was broken once counts (test/faults/record.ts).
          retry: onCi ? 1 : 0,
          include: [faults],
          exclude: roomy,
          fileParallelism: false,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'faults-roomy',
          retry: onCi ? 1 : 0,
          include: roomy,
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
