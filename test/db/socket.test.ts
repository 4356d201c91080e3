import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { BatchingSocket, ImpatientSocket } from '../../src/db/socket.ts'
import { atEnd } from '../support/at-end.ts'

/** A socket to a server that gathers what it receives, one text for each piece. */
async function connected<S extends Socket>(socket: S): Promise<{ socket: S; pieces: string[]; peer: Socket }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  const accepted = once(server, 'connection')
  socket.connect(address.port, '127.0.0.1')
  const [peer] = (await accepted) as [Socket]
  await once(socket, 'connect')
  const pieces: string[] = []
  peer.on('data', (piece) => pieces.push(piece.toString()))
  atEnd(() => {
    socket.destroy()
    peer.destroy()
    server.close()
  })
  return { socket, pieces, peer }
}

const statement = (socket: BatchingSocket, text: string) => {
  socket.cork()
  socket.write(`${text} `)
  socket.write('; ')
  socket.uncork()
}

test('statements of one turn are sent together, and those of the next turn by themselves', async () => {
  const { socket, pieces, peer } = await connected(new BatchingSocket())
  statement(socket, 'one')
  await Promise.resolve()
  statement(socket, 'two')
  await once(peer, 'data')
  statement(socket, 'three')
  await once(peer, 'data')
  expect(pieces).toEqual(['one ; two ; ', 'three ; '])
})

test('the end of a socket sends what it holds', async () => {
  const { socket, pieces, peer } = await connected(new BatchingSocket())
  statement(socket, 'last')
  socket.end()
  await once(peer, 'end')
  expect(pieces.join('')).toBe('last ; ')
})

test('a socket to a server that says nothing closes itself, and emits no error', async () => {
  const { socket, peer } = await connected(new ImpatientSocket(200))
  const errors: Error[] = []
  socket.on('error', (error) => errors.push(error))
  for (let time = 0; time < 8; time += 1) {
    peer.write('data')
    await once(socket, 'data')
    await delay(50)
  }
  expect(socket.destroyed).toBe(false)
  await once(socket, 'close')
  expect(errors).toEqual([])
})
