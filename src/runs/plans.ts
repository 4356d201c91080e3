import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import type { Keyring } from '../db/seal.ts'
import type { Conditions } from '../plan/engine.ts'

/** Digests of documents and of plans, by which an apply finds the plan that was reviewed. */

export const digestOf = (keyring: Keyring, document: string): Buffer => keyring.digest('document', document)

/** A digest of a document and of the rows that each of its entries read: equal plans have equal tags. */
export function planTagOf(
  keyring: Keyring,
  document: Buffer,
  digests: readonly string[],
  { reset, stack }: Pick<Conditions, 'reset' | 'stack'>,
): string {
  const others = [...(reset ? ['reset'] : []), ...(stack === null ? [] : [`stack ${stack}`])]
  return keyring
    .digest('plan', document, digests.join(), ...others)
    .toString('base64url')
    .slice(0, 22)
}

const planRow = z.object({
  digests: z.array(z.string()),
  document: z.instanceof(Uint8Array).nullable(),
  at: z.date(),
  reset: z.boolean(),
  stack: z.string().nullable(),
})

/** Reads a plan by its tag; undefined when there is none, or none any more. */
export async function readPlan(reader: EngineReader, tag: string): Promise<z.output<typeof planRow> | undefined> {
  const [plan] = await reader.query(planRow, {
    text: `SELECT entry_digests AS digests, document, created_at AS at,
        coalesce((options->>'reset')::boolean, false) AS reset, options->>'stack' AS stack FROM runs WHERE plan_tag = $1 LIMIT 1`,
    values: [tag],
  })
  return plan
}
