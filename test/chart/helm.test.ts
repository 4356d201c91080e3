import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CORE_SCHEMA, dump, load, loadAll, mergeTag } from 'js-yaml'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { freshFolder, needs, promtool, registryEnvironment } from '../support/kit.ts'
import { checkBy, type KubernetesObject, objectSchema, type Pod, podSchema } from './objects.ts'
import { call, helm, kubernetesSchemas, type Output, operatorModels } from './tools.ts'

/** The chart as Helm renders it. Nothing here has a cluster: objects are held against the schemas of Kubernetes. */

const root = new URL('../../', import.meta.url)
const chart = fileURLToPath(new URL('charts/gatewright', root))
const textOf = (path: string) => readFileSync(new URL(path, root), 'utf8')

/** The oldest that the chart takes, and the newest whose schemas there are. */
const versions = ['1.25.0', '1.37.0'] as const
/** A Helm that Go has built takes the cluster for an old one without it. */
const cluster = ['--kube-version', versions[1]]
const valuesFiles = readdirSync(join(chart, 'ci'))
const sets = [['the defaults', []], ...valuesFiles.map((name) => [name, ['--values', join(chart, 'ci', name)]])] as [
  string,
  string[],
][]

describe.runIf(needs('go', 'python3', 'promtool'))('Helm', () => {
  let run: (...args: string[]) => Promise<Output>
  const rendered = new Map<string, KubernetesObject[]>()
  /** The objects of one set of values. */
  const objectsOf = (name: string): KubernetesObject[] => rendered.get(name) ?? []

  async function template(...args: string[]): Promise<KubernetesObject[]> {
    const { stdout } = await run('template', 'production', chart, '--namespace', 'identity', ...cluster, ...args)
    return loadAll(stdout)
      .filter((each) => each !== null)
      .map((each) => objectSchema.parse(each))
  }

  /** The pods of one set of values, by the name of their container. */
  const podsOf = (name: string): Record<string, Pod> =>
    Object.fromEntries(
      objectsOf(name).flatMap(({ kind, spec }) => {
        if (!['Deployment', 'Job'].includes(kind)) return []
        const pod = z.object({ template: z.object({ spec: podSchema }) }).parse(spec).template.spec
        return [[pod.containers[0].name, pod]]
      }),
    )

  beforeAll(async () => {
    const folder = freshFolder()
    const own = { HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder }
    const program = await helm(registryEnvironment())
    run = (...args) => call(program, args, { ...registryEnvironment(), ...own })
    for (const [name, args] of sets) rendered.set(name, await template(...args))
  })

  test.each(sets)('lints %s', async (_, args) => {
    const { stdout } = await run('lint', '--strict', chart, ...cluster, ...args)
    expect(stdout).toContain('0 chart(s) failed')
  })

  describe.each(versions)('by the schemas of Kubernetes %s', (version) => {
    let errorsOf: (object: KubernetesObject) => unknown
    beforeAll(async () => {
      errorsOf = checkBy(await kubernetesSchemas(version))
    })

    test.each(sets)('%s are valid', (name) => {
      const checked = objectsOf(name).filter(({ apiVersion }) => !apiVersion.startsWith('monitoring.'))
      expect(checked.length).toBeGreaterThan(2)
      for (const object of checked)
        expect([object.kind, object.metadata.name, errorsOf(object)]).toEqual([object.kind, object.metadata.name, null])
    })

    test('a field that is not there is an error', () => {
      const [deployment] = objectsOf('the defaults').filter(({ kind }) => kind === 'Deployment')
      if (deployment === undefined) throw new Error('there is no deployment')
      const errors = errorsOf({ ...deployment, spec: { ...deployment.spec, replica: 2 } })
      expect(errors).toMatchObject([{ instancePath: '/spec', params: { additionalProperty: 'replica' } }])
    })
  })

  test('objects of the Prometheus operator are valid', async () => {
    const models = await operatorModels()
    const kinds = ['ServiceMonitor', 'PodMonitor', 'PrometheusRule'] as const
    const objects = objectsOf('everything-values.yaml').filter(({ apiVersion }) => apiVersion.startsWith('monitoring.'))
    expect(objects.map(({ kind }) => kind).sort()).toEqual([...kinds].sort())
    for (const object of objects) {
      const { [object.kind]: Model } = await import(`${models}${object.kind}.js`)
      new Model(object).validate()
      expect(() => new Model({ ...object, spec: { selector: 'all', groups: 'all' } }).validate()).toThrow()
    }
  })

  test('each setting that it sets is one of the documentation, and no secret is a value', () => {
    const known = new Set(textOf('docs/settings.md').match(/`[A-Z_]+`/g))
    for (const [name] of sets) {
      for (const { containers } of Object.values(podsOf(name))) {
        for (const { name: variable, value, valueFrom } of containers[0].env) {
          const setting = variable.replace(/_FILE$/, '')
          expect([
            variable,
            known.has(`\`${setting}\``) ||
              known.has(`\`${setting.replace(/^OTEL_EXPORTER_OTLP/, '')}\``) ||
              known.has(`\`${variable}\``),
          ]).toEqual([variable, true])
          if (variable.endsWith('_FILE')) expect(value).toMatch(/^\/run\/secrets\/gatewright\/[a-z-]+$/)
          expect([variable, value !== undefined || valueFrom !== undefined]).toEqual([variable, true])
        }
      }
    }
  })

  test.each(sets)('%s: each program gets its own secrets, and nothing runs as root or writes to its image', (name) => {
    const pods = podsOf(name)
    expect(Object.keys(pods)).toEqual(expect.arrayContaining(['api', 'worker']))
    for (const pod of Object.values(pods)) {
      expect(pod.automountServiceAccountToken).toBe(false)
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      const [container] = pod.containers
      expect(container.securityContext).toEqual({
        ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
      })
      const named = container.env.filter(({ name: variable }) => /_FILE$|^NODE_EXTRA_CA_CERTS$/.test(variable))
      const files = named.map(({ value }) => value)
      // The job reaches PostgreSQL, too.
      expect(files.includes('/run/secrets/gatewright/ca.crt')).toBe(name === 'everything-values.yaml')
      const keys = pod.volumes.flatMap(({ secret }) => secret?.items.map(({ key }) => key) ?? [])
      expect(files.sort()).toEqual(keys.map((key) => `/run/secrets/gatewright/${key}`).sort())
      expect(container.volumeMounts.map(({ mountPath }) => mountPath)).toEqual([
        '/run/secrets/gatewright',
        '/tmp',
        '/data',
      ])
      for (const admin of ['migration-database-url', 'admin-database-url'])
        if (container.name !== 'migration') expect(keys).not.toContain(admin)
    }
  })

  test('programs, user, port and probes are those of the image, and stop as compose stops them', () => {
    const dockerfile = textOf('Dockerfile')
    const { api, worker, migration } = podsOf('the defaults')
    const [, command = ''] = /^CMD (\[.*\])$/m.exec(dockerfile) ?? []
    expect(api?.containers[0].command).toEqual(JSON.parse(command))
    const compose = z
      .object({
        services: z.record(
          z.string(),
          z.looseObject({ command: z.array(z.string()).optional(), stop_grace_period: z.string().optional() }),
        ),
      })
      .parse(load(textOf('docker-compose.yml'), { schema: CORE_SCHEMA.withTags(mergeTag) })).services
    expect(worker?.containers[0].command).toEqual(compose.worker?.command)
    expect(migration?.containers[0].command).toEqual(compose.database?.command)
    // The user `node` of the image has the id 1000.
    expect(dockerfile).toMatch(/^USER node$/m)
    expect(dockerfile).toMatch(/^EXPOSE 9000$/m)
    expect(dockerfile).toMatch(/^ENV DATA_DIR=\/data$/m)
    expect(api?.containers[0]).toMatchObject({
      ports: [
        { name: 'http', containerPort: 9000 },
        { name: 'metrics', containerPort: 9100 },
      ],
      livenessProbe: { httpGet: { path: '/-/health/live/' } },
      readinessProbe: { httpGet: { path: '/-/health/ready/' } },
    })
    // Both wait for as long beside the time to drain.
    const drain = z.string().parse(api?.containers[0].env.find(({ name }) => name === 'DRAIN_MS')?.value)
    const [, composeDrain = ''] = /DRAIN_MS:-(\d+)/.exec(textOf('docker-compose.yml')) ?? []
    const seconds = (text = '') => Number(text.replace('s', ''))
    expect((api?.terminationGracePeriodSeconds ?? 0) - Number(drain) / 1_000).toBe(
      seconds(compose.api?.stop_grace_period) - Number(composeDrain) / 1_000,
    )
    expect(worker?.terminationGracePeriodSeconds).toBe(seconds(compose.worker?.stop_grace_period))
  })

  test('what is optional is left out, and what belongs together is found', () => {
    const kindsOf = (name: string) =>
      objectsOf(name)
        .map(({ kind }) => kind)
        .sort()
    expect(kindsOf('postgres-queue-values.yaml')).toEqual(['Deployment', 'Deployment', 'Service'])
    const alone = podsOf('postgres-queue-values.yaml')
    expect(alone.api?.containers[0].env.map(({ name }) => name)).not.toContain('REDIS_URL_FILE')
    const pooled = podsOf('pgbouncer-values.yaml')
    for (const pod of [pooled.api, pooled.worker])
      expect(pod?.containers[0].env.map(({ name }) => name)).toContain('DIRECT_DATABASE_URL_FILE')
    for (const [name] of sets) {
      const objects = objectsOf(name)
      const labelled = objects.flatMap(({ kind, spec }) =>
        kind === 'Deployment' || kind === 'Job'
          ? [
              z
                .object({ template: z.object({ metadata: z.object({ labels: z.record(z.string(), z.string()) }) }) })
                .parse(spec).template.metadata.labels,
            ]
          : [],
      )
      for (const { kind, spec } of objects.filter((each) =>
        ['PodDisruptionBudget', 'NetworkPolicy'].includes(each.kind),
      )) {
        const selector = z.object({ matchLabels: z.record(z.string(), z.string()) })
        const parts = z.object({ selector: selector.optional(), podSelector: selector.optional() }).parse(spec)
        const { matchLabels } = parts.selector ?? parts.podSelector ?? { matchLabels: { nothing: '' } }
        const isFound = labelled.some((labels) =>
          Object.entries(matchLabels).every(([label, value]) => labels[label] === value),
        )
        expect([name, kind, isFound]).toEqual([name, kind, true])
      }
    }
  })

  test('a number of a million is written in digits, and the fraction beside it stays one', () => {
    const { api, worker } = podsOf('everything-values.yaml')
    for (const pod of [api, worker])
      expect(pod?.containers[0].env).toEqual(
        expect.arrayContaining([
          { name: 'RATE_LIMIT_REQUESTS_PER_SECOND', value: '1000000' },
          { name: 'OTEL_TRACES_SAMPLER_ARG', value: '0.05' },
        ]),
      )
  })

  test('an API has `startupSeconds` to start', () => {
    const triesOf = (name: string) => podsOf(name).api?.containers[0].startupProbe
    expect(triesOf('the defaults')).toMatchObject({ periodSeconds: 2, failureThreshold: 150 })
    expect(triesOf('postgres-queue-values.yaml')).toMatchObject({ periodSeconds: 2, failureThreshold: 1_800 })
  })

  test('the job has its network policy first, and Prometheus reaches the API beside those that may call it', () => {
    const policyOf = (component: string) => {
      const name = `identity-${component}`
      const policies = objectsOf('everything-values.yaml').filter(({ kind }) => kind === 'NetworkPolicy')
      return policies.find(({ metadata }) => metadata.name === name)
    }
    const job = objectsOf('everything-values.yaml').find(({ kind }) => kind === 'Job')
    const hook = { 'helm.sh/hook': 'pre-install,pre-upgrade', 'helm.sh/hook-delete-policy': expect.any(String) }
    expect(job?.metadata.annotations).toEqual(hook)
    // Hooks are made in the order of their weights; without one it is 0.
    expect(policyOf('migration')?.metadata.annotations).toEqual({ ...hook, 'helm.sh/hook-weight': '-1' })
    expect(policyOf('api')?.metadata.annotations).toBeUndefined()
    const namespace = (name: string) => ({
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
    })
    expect(policyOf('api')?.spec).toMatchObject({
      ingress: [
        { from: [namespace('ingress')], ports: [{ port: 'http' }] },
        { from: [namespace('monitoring')], ports: [{ port: 'metrics' }] },
      ],
    })
    expect(policyOf('worker')?.spec).toMatchObject({ ingress: [{ from: [namespace('monitoring')] }] })
  })

  test('a package of it has the board and the alerts of the documentation', async () => {
    const folder = freshFolder()
    await run('package', chart, '--destination', folder)
    const [archive = ''] = readdirSync(folder)
    const args = ['--values', join(chart, 'ci/everything-values.yaml')]
    const { stdout } = await run('template', 'production', join(folder, archive), ...cluster, ...args)
    const objects = loadAll(stdout)
      .filter((each) => each !== null)
      .map((each) => objectSchema.extend({ data: z.record(z.string(), z.string()).optional() }).parse(each))
    const boards = objects.filter(({ kind }) => kind === 'ConfigMap').map(({ data }) => data)
    expect(boards).toEqual([{ 'gatewright.json': textOf('docs/snippets/grafana-board.json') }])
    const rules = objects.find(({ kind }) => kind === 'PrometheusRule')?.spec
    expect(rules).toEqual(load(textOf('docs/snippets/prometheus-alerts.yml')))
    await writeFile(join(folder, 'rules.yml'), dump(rules))
    expect(await promtool(['check', 'rules', 'rules.yml'], { cwd: folder })).toMatchObject({ code: 0 })
    // They ask for this job, which the ServiceMonitor takes from the label of the service.
    const monitor = objects.find(({ kind }) => kind === 'ServiceMonitor')?.spec
    const service = objects.find(({ kind }) => kind === 'Service')
    expect(service?.metadata.labels[String(monitor?.jobLabel)]).toBe('gatewright')
  })

  test.each([
    ['a value that is not there', ['--set', 'api.replicaz=1'], /replicaz/],
    ['a setting that is not there', ['--set', 'settings.LOG_LEVELL=info'], /LOG_LEVELL/],
    ['a secret as a setting', ['--set', 'settings.SECRET_KEY=x'], /SECRET_KEY/],
    ['a time to stop that is too short', ['--set', 'worker.stopSeconds=5'], /stopSeconds/],
    ['an ingress without hosts', ['--set', 'ingress.enabled=true'], /ingress\.hosts/],
    ['a job without its login', ['--set', 'secrets.keys.migrationDatabaseUrl='], /the login that owns the tables/],
  ])('refuses %s', async (_, args, reason) => {
    await expect(template(...args)).rejects.toThrow(reason)
  })
})
