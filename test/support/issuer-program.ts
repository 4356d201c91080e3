import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from 'jose'
import type { Claims, HowToAnswer, HowToSign } from './issuer.ts'

/** An OpenID issuer, as a process of its own. `issuer.ts` starts it, and controls it below `/control/`. */

type Key = { readonly kid: string; readonly alg: string; readonly publicKey: CryptoKey; readonly privateKey: CryptoKey }

/** All that there ever were, the newest last. Those in `shown` are in the key set. */
const keys: Key[] = []
let shown: readonly Key[] = []
const requests: Record<string, number> = {}
const answers = new Map<string, HowToAnswer>()
let job: Claims = {}

async function rotate({ keep = true, alg = 'RS256' }: { keep?: boolean; alg?: string }): Promise<string> {
  const key = { kid: `key-${keys.length + 1}`, alg, ...(await generateKeyPair(alg, { extractable: true })) }
  keys.push(key)
  shown = keep ? [...shown, key] : [key]
  return key.kid
}

const publicKeys = async (): Promise<{ keys: JWK[] }> => ({
  keys: await Promise.all(
    shown.map(async ({ kid, alg, publicKey }) => ({ ...(await exportJWK(publicKey)), kid, alg, use: 'sig' })),
  ),
})

/** @param claims beside the usual ones; null takes one away */
async function sign(claims: Claims, { kid, alg, expiresIn = 300, issuedIn = 0, header = {} }: HowToSign) {
  const now = Math.floor(Date.now() / 1_000)
  const usual = { iss: url, aud: 'gatewright', sub: 'job', iat: now + issuedIn, exp: now + expiresIn }
  const all = Object.entries({ ...usual, jti: randomUUID(), ...claims }).filter(([, value]) => value !== null)
  const payload = Object.fromEntries(all)
  if (alg === 'none') return new UnsecuredJWT(payload).encode()
  const key = keys.find((one) => one.kid === kid) ?? keys.at(-1)
  if (key === undefined) throw new Error('there is no key')
  const jwt = new SignJWT(payload).setProtectedHeader({
    typ: 'JWT',
    alg: alg ?? key.alg,
    ...(kid === null ? {} : { kid: kid ?? key.kid }),
    ...header,
  })
  const secret = new TextEncoder().encode(await exportSPKI(key.publicKey))
  return await jwt.sign(alg?.startsWith('HS') ? secret : key.privateKey)
}

async function control(path: string, body: never): Promise<unknown> {
  switch (path) {
    case 'sign':
      return await sign(...(body as [Claims, HowToSign]))
    case 'rotate':
      return await rotate(body)
    case 'answer': {
      const [asked, how] = body as [string, HowToAnswer?]
      return how === undefined ? answers.delete(asked) : answers.set(asked, how).size
    }
    case 'job':
      job = body
      return null
    case 'jwks':
      return await publicKeys()
    case 'requests':
      return requests
    default:
      throw new Error(`no control ${path}`)
  }
}

function send(reply: ServerResponse, status: number, body: unknown): void {
  reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** Bytes until the client goes. */
async function sendOnAndOn(reply: ServerResponse, chunk: string, everyMs: number): Promise<void> {
  reply.writeHead(200, { 'content-type': 'application/json' }).write('{"keys":[')
  while (!reply.destroyed) {
    if (!reply.write(chunk)) await Promise.race([once(reply, 'drain'), once(reply, 'close')])
    await delay(everyMs)
  }
}

async function answerOtherwise(reply: ServerResponse, how: HowToAnswer): Promise<void> {
  if ('redirect' in how) return void reply.writeHead(how.status ?? 302, { location: how.redirect }).end()
  if ('body' in how) return void reply.writeHead(how.status ?? 200).end(how.body)
  if ('json' in how) return send(reply, how.status ?? 200, how.json)
  if (how.sends === 'nothing') return
  if (how.sends === 'upgrade') return void reply.writeHead(101, { connection: 'upgrade', upgrade: 'x' }).flushHeaders()
  await sendOnAndOn(reply, ' '.repeat(how.sends === 'endless' ? 65_536 : 1), how.sends === 'endless' ? 0 : 20)
}

async function answer(request: IncomingMessage, reply: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', url)
  if (pathname.startsWith('/control/'))
    return send(reply, 200, await control(pathname.slice('/control/'.length), (await json(request)) as never))
  requests[pathname] = (requests[pathname] ?? 0) + 1
  const how = answers.get(pathname)
  if (how !== undefined) return await answerOtherwise(reply, how)
  switch (pathname) {
    case '/.well-known/openid-configuration':
      return send(reply, 200, { issuer: url, jwks_uri: `${url}/jwks`, response_types_supported: ['id_token'] })
    case '/jwks':
      return send(reply, 200, await publicKeys())
    case '/github/token': {
      if (request.headers.authorization?.toLowerCase() !== 'bearer request-token')
        return send(reply, 401, { message: 'Unauthorized' })
      const aud = searchParams.get('audience') ?? 'https://github.example/acme'
      return send(reply, 200, { count: 1, value: await sign({ ...job, aud }, {}) })
    }
    default:
      return send(reply, 404, { message: 'Not Found' })
  }
}

const server = createServer((request, reply) => {
  answer(request, reply).catch((error: unknown) => {
    process.stderr.write(`${(error as Error).stack}\n`)
    if (reply.headersSent) reply.destroy()
    else send(reply, 500, { message: String(error) })
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
await rotate({})
process.stdout.write(`${url} listens\n`)
