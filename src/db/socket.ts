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

/**
 * A socket that closes itself after a time without any data of the server. It suits connections with regular data of the server,
 * and those that are cheap to replace. It emits no 'error': the driver reports the lost connection, unless it is closing it, and
 * then BullMQ has no listener any more.
 */
export class ImpatientSocket extends Socket {
  constructor(silentMs: number) {
    super()
    let seen = 0
    let silentTicks = 0
    const watch = setInterval(() => {
      silentTicks = this.bytesRead === seen ? silentTicks + 1 : 0
      seen = this.bytesRead
      if (silentTicks >= ticks) this.destroy()
    }, silentMs / ticks)
    watch.unref()
    this.once('close', () => clearInterval(watch))
  }
}

const ticks = 4
