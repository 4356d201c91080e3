import type { EngineTx } from '../db/engine-tx.ts'
import type { Statement } from '../db/raw.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { insert, type Key, linksOf, onceFor, remove, type Updated, update } from '../plan/statements.ts'
import { keysOf } from '../plan/storage.ts'

/**
 * The writes of a document, collected so that rows of one model are written together. A write joins earlier ones only where that changes nothing: docs/adr/0046-writes-are-collected.md.
 */

/** Turns the failure of a write into the error for the caller. @param count the number of rows that the statement wrote */
export type Explain = (error: unknown, count: number) => unknown

/** A row to write. Nothing but the key counts of one that is deleted. */
export type Write = Updated & { readonly kind: 'insert' | 'update' | 'delete' }

type Batch = {
  readonly kind: Write['kind']
  readonly model: Model
  /** Writes of one shape share a statement. */
  readonly shape: string
  readonly writes: Write[]
  readonly keys: Set<Key>
  readonly explain: Explain
}

const maxRows = 1_000

export class Writes {
  readonly #tx: EngineTx
  readonly #registry: Registry
  #batches: Batch[] = []
  #rows = 0

  constructor(tx: EngineTx, registry: Registry) {
    this.#tx = tx
    this.#registry = registry
  }

  /** Sends another statement, behind the collected writes. */
  send(statement: Statement): void {
    this.flush()
    this.#tx.send(statement)
  }

  /** @param isNaming whether it changes a name, or another value that only one row may have: such writes keep their order */
  add(model: Model, write: Write, isNaming: boolean, explain: Explain): void {
    const { kind, pk, row, referring, references, edits = new Map() } = write
    const written = [...row.columns.keys(), '', ...row.links.keys(), '', ...referring, '', ...edits.keys()].join()
    const shape = `${kind} ${kind === 'delete' ? model.table : model.name} ${written}${isNaming ? ` of ${pk}` : ''}`
    // The values in which the write may name rows that others write.
    const named = [...row.columns.values(), ...row.links.values(), ...references.flatMap(Object.values)]
    const keys = new Set(named.flatMap(keysOf))
    const takes = (batch: Batch) => batch.shape === shape && !batch.keys.has(pk)
    const last = this.#batches.findLast((batch) => takes(batch) || mustFollow(kind, model, keys, batch))
    let joined = last && takes(last) ? last : undefined
    if (joined === undefined) {
      joined = { kind, model, shape, writes: [], keys: new Set(), explain }
      this.#batches.push(joined)
    }
    joined.writes.push(write)
    joined.keys.add(pk)
    this.#rows += 1
    if (this.#rows >= maxRows) this.flush()
  }

  /** Sends the collected writes, and does not wait for them. */
  flush(): void {
    const batches = this.#batches
    this.#batches = []
    this.#rows = 0
    for (const batch of batches) {
      const { writes, explain } = batch
      for (const statement of statementsOf(batch, this.#registry))
        this.#tx.send(statement, (error) => explain(error, writes.length))
    }
  }
}

/** Whether a write must stay behind those of a batch: it may depend on them. */
function mustFollow(kind: Write['kind'], model: Model, named: ReadonlySet<Key>, batch: Batch): boolean {
  // Rows that refer to a row are deleted before it, in any document that can be applied.
  if (kind === 'delete' && batch.kind === 'delete') return false
  if (kind === 'delete' || batch.kind === 'delete') return true
  return !tablesOf(batch.model).isDisjointFrom(tablesOf(model)) || !batch.keys.isDisjointFrom(named)
}

/** All tables that a row of the model is stored in. */
const tablesOf = onceFor((model: Model): ReadonlySet<string> => {
  const links = linksOf(model).map(([, { table }]) => table)
  return new Set([model.table, ...links, ...(model.referenceRows === undefined ? [] : [model.referenceRows.table])])
})

function statementsOf({ model, kind, writes }: Batch, registry: Registry): Statement[] {
  switch (kind) {
    case 'insert':
      return [insert(model, registry, writes)]
    case 'update':
      return update(model, registry, writes)
    case 'delete':
      return [remove(model, writes)]
    default:
      return kind satisfies never
  }
}
