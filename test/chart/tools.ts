import { execFile } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** What `npm run chart` runs. It is built and installed once, and kept below `node_modules/.cache/`. */

const execute = promisify(execFile)
const cache = fileURLToPath(new URL('../../node_modules/.cache/chart/', import.meta.url))

const helmVersion = 'v3.22.0'
/** It carries the schemas of each Kubernetes since 1.25. */
const schemasVersion = '1.37.0'
/** It checks objects of the Prometheus operator. */
const operatorVersion = '6.0.0'

export type Output = { readonly stdout: string; readonly stderr: string }

/** @throws with the end of its output */
export async function call(
  program: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Output> {
  const options = { timeout: 580_000, maxBuffer: 64_000_000, ...(Object.keys(env).length > 0 && { env }) }
  return await execute(program, args, options).catch((error: Error & Output) => {
    throw new Error(`${error.message}\n${error.stdout.slice(-4_000)}`, { cause: error })
  })
}

/** @returns the path of Helm, built by Go */
export async function helm(environment: Record<string, string>): Promise<string> {
  const folder = join(cache, `helm-${helmVersion}`)
  const program = join(folder, 'helm')
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true })
    const env = { ...environment, GOBIN: folder, CGO_ENABLED: '0' }
    await call('go', ['install', '-ldflags=-s -w', `helm.sh/helm/v3/cmd/helm@${helmVersion}`], env)
  }
  return program
}

/** @returns the folder of JSON schemas of one version of Kubernetes, in which unknown fields are errors */
export async function kubernetesSchemas(version: string): Promise<string> {
  const folder = join(cache, `kubernetes-${schemasVersion}`)
  if (!existsSync(folder)) {
    const args = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps', '--no-compile']
    await call('python3', [...args, '--target', folder, `kubernetes-validate==${schemasVersion}`])
  }
  return join(folder, 'kubernetes_validate/kubernetes-json-schema', `v${version}-local-strict`)
}

/** @returns the URL of a module of checks for the objects of `monitoring.coreos.com/v1` */
export async function operatorModels(): Promise<string> {
  const folder = join(cache, `operator-${operatorVersion}`)
  if (!existsSync(folder))
    await call('npm', [
      ...['install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'],
      `@kubernetes-models/prometheus-operator@${operatorVersion}`,
    ])
  return new URL('node_modules/@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/', `file://${folder}/`)
    .href
}
