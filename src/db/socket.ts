import { Socket } from 'node:net'

/**
 * A socket that sends the statements of one turn of the event loop together: the driver corks and uncorks for each
 * statement, and every write is a system call (docs/adr/0026-the-worker-pipelines.md).
 */
export class BatchingSocket extends Socket {
  #holds = false

  override cork(): void {
    super.cork()
    if (this.#holds) return
    this.#holds = true
    super.cork()
    setImmediate(() => {
      this.#holds = false
      super.uncork()
    })
  }
}
