import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { z } from 'zod'

/** Objects of Kubernetes, as far as the tests of the chart read them. */

export const objectSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), labels: z.record(z.string(), z.string()) }),
  spec: z.looseObject({}).optional(),
})
export type KubernetesObject = z.output<typeof objectSchema>

/** @param folder of the schemas of one version. @returns the errors of an object; null when there is none */
export function checkBy(folder: string): (object: KubernetesObject) => unknown {
  const read = (file: string) => JSON.parse(readFileSync(join(folder, file), 'utf8'))
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  ajv.addSchema(read('_definitions.json'), 'https://schemas/api/_definitions.json')
  return (object) => {
    const [group = '', version] = object.apiVersion.split('/')
    const suffix = version === undefined ? group : `${group.split('.')[0]}-${version}`
    const file = `${object.kind.toLowerCase()}-${suffix}.json`
    const $id = `https://schemas/${file}`
    const validate = ajv.getSchema($id) ?? ajv.compile({ ...read(file), $id })
    validate(object)
    return validate.errors
  }
}

const envSchema = z.array(
  z.object({ name: z.string(), value: z.string().optional(), valueFrom: z.unknown().optional() }),
)
const probe = z.object({
  httpGet: z.object({ path: z.string(), port: z.string() }),
  periodSeconds: z.int(),
  failureThreshold: z.int().optional(),
})
const containerSchema = z.object({
  name: z.string(),
  command: z.array(z.string()),
  env: envSchema,
  ports: z.array(z.object({ name: z.string(), containerPort: z.int() })).optional(),
  startupProbe: probe.optional(),
  livenessProbe: probe.optional(),
  readinessProbe: probe.optional(),
  resources: z.object({ limits: z.object({ memory: z.string() }) }),
  securityContext: z.unknown(),
  volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string() })),
})
export const podSchema = z.object({
  automountServiceAccountToken: z.boolean(),
  terminationGracePeriodSeconds: z.int().optional(),
  securityContext: z.unknown(),
  containers: z.tuple([containerSchema]),
  volumes: z.array(
    z.looseObject({
      name: z.string(),
      secret: z.object({ items: z.array(z.object({ key: z.string() })) }).optional(),
    }),
  ),
})
export type Pod = z.output<typeof podSchema>
