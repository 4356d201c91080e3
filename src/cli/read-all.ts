import { z } from 'zod'
import { type Client, read } from './client.ts'

/** Reads all pages of a list. @throws {Unreachable} @throws {UsageError} as `read` */
export async function readAll<Item extends z.ZodType>(client: Client, path: string, item: Item, ordering: string) {
  const page = z.object({ pagination: z.object({ next: z.number() }), results: z.array(item) })
  const found: z.output<Item>[] = []
  for (let next = 1; next > 0; ) {
    const query = new URLSearchParams({ ordering, page_size: '100', page: String(next) })
    const { pagination, results } = await read(client, `${path}?${query}`, page)
    found.push(...results)
    next = pagination.next
  }
  return found
}
