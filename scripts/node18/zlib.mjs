// `node:zlib` of the packed program, for Node before 20.15.
import * as zlib from 'node:zlib'

export * from 'node:zlib'

/** CRC-32 of ISO-HDLC, as zlib's: reflected, of this polynomial. */
const polynomial = 0xedb88320

export const crc32 =
  zlib.crc32 ??
  ((data) => {
    let rest = ~0
    for (const byte of Buffer.from(data)) {
      rest ^= byte
      for (let bit = 0; bit < 8; bit += 1) rest = rest & 1 ? (rest >>> 1) ^ polynomial : rest >>> 1
    }
    return ~rest >>> 0
  })
