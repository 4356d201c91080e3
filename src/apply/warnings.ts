import type { Finding } from '../plan/inspect.ts'
import { rowName } from './refusal.ts'

/** Shorter secrets can be guessed. They are applied all the same: what they open may take no longer one. */
const minSecret = 20

/** @returns a line of the log for each secret that the document sets and that is short. An empty text is no secret. */
export function shortSecrets(finding: Finding): string[] {
  const { step, action, sent, changed, values, generated } = finding
  if (action !== 'create' && action !== 'update') return []
  return [...step.model.fields.values()].flatMap(({ name, secret }) => {
    const value = values[name]
    const isSent = secret && sent.has(name) && changed.includes(name) && generated[name] === undefined
    if (!isSent || typeof value !== 'string' || value === '' || [...value].length >= minSecret) return []
    return [`warning: the sent ${name} of ${rowName(finding)} has fewer than ${minSecret} characters`]
  })
}
