type Close = () => void | Promise<void>

const closing: Close[] = []

/** Registers what must be closed when the test file is done; the last registered goes first. */
export function atEnd(close: Close): void {
  closing.push(close)
}

/** @throws what any of them threw, after all of them have run */
export async function closeAll(): Promise<void> {
  const failures: unknown[] = []
  for (const close of closing.splice(0).reverse()) {
    try {
      await close()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length === 1) throw failures[0]
  if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('\n'))
}
