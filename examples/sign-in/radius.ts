import { renameSync, writeFileSync } from 'node:fs'
import { follow, type Known, type Row, type Secrets } from './gatewright.ts'

/**
 * `node radius.ts FILE`: writes clients.conf of FreeRADIUS from the providers of the kind radius, and again at each change.
 * FreeRADIUS knows one secret for a network: the newest.
 */

type Radius = Row & { readonly client_networks: string; readonly shared_secret: Secrets }

const [file = 'clients.conf'] = process.argv.slice(2)
const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`

function section({ pk, name, client_networks, shared_secret }: Radius): string {
  const secret = shared_secret?.[0]?.value
  const label = name.replace(/[^\w.-]/g, '_')
  // A line break would begin another setting, and `${` a variable.
  if (secret === undefined || /[\r\n]|\$\{/.test(secret))
    return `# ${label}: its secret cannot be read, or not be written here\n`
  return client_networks
    .split(',')
    .map((network) => network.trim())
    .filter((network) => /^[\da-fA-F.:/]+$/.test(network))
    .map(
      (network, index) =>
        `client gatewright-${pk}-${index} {\n  shortname = ${quoted(label)}\n  ipaddr = ${network}\n  secret = ${quoted(secret)}\n}\n`,
    )
    .join('')
}

function write(known: Known<Radius>): void {
  const rows = [...known.values()].sort((one, other) => one.pk - other.pk)
  writeFileSync(`${file}.new`, rows.map(section).join(''), { mode: 0o600 })
  renameSync(`${file}.new`, file)
  console.log(`${file}: ${rows.length} providers`)
}

await follow<Radius>('radius', ({ name }) => name, write)
