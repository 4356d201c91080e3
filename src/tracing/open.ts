import type { Config } from '../config.ts'
import { logger } from '../log.ts'
import { limitTime } from '../time-limit.ts'

/** Milliseconds for the spans that are not delivered yet when the process stops. */
const deliverMs = 1_000

/**
 * Begins to trace this process when the settings name a receiver of traces. Call it before anything is opened that it shall
 * trace: the database, the queue, the log, the API.
 *
 * @param write takes the lines of its log, instead of stdout
 */
export async function openTracing(
  program: 'api' | 'worker',
  config: Config,
  write?: (line: string) => void,
): Promise<{ stop(): Promise<void> }> {
  const { otelExporterOtlpEndpoint, otelExporterOtlpTracesEndpoint, otelSdkDisabled, otelTracesExporter } = config
  const receiver = otelExporterOtlpTracesEndpoint ?? otelExporterOtlpEndpoint
  if (receiver === null || otelSdkDisabled === 'true' || otelTracesExporter === 'none') return { stop: async () => {} }
  const { startSdk } = await import('./sdk.ts')
  const provider = startSdk(program, config, logger(program, config.logLevel, write))
  return { stop: () => limitTime(provider.shutdown(), deliverMs, () => {}).catch(() => {}) }
}
