import { chownSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PostgresServer, serverUser, startPostgres } from './postgres.ts'
import { within } from './template.ts'

/**
 * A streaming replica of a running server. The npm package has no `pg_basebackup`, so the backup is taken as PostgreSQL's
 * manual has it for other programs.
 */
export const startReplica = (primary: PostgresServer): Promise<PostgresServer> =>
  within(primary.url(), async (client) => {
    await client.query("SELECT pg_backup_start('replica', true)")
    return await startPostgres({
      durable: false,
      from: join(primary.folder, 'data'),
      settings: { primary_conninfo: `host=127.0.0.1 port=${primary.port} user=postgres` },
      prepare: async (dataFolder) => {
        const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)')
        const owner = serverUser()
        for (const [name, text] of [
          ['backup_label', rows[0]?.labelfile ?? ''],
          ['standby.signal', ''],
        ] as const) {
          writeFileSync(join(dataFolder, name), text)
          if (owner !== undefined) chownSync(join(dataFolder, name), owner.uid, owner.gid)
        }
        rmSync(join(dataFolder, 'postmaster.pid'))
      },
    })
  })
