/** Reads a stream to its end. @throws the error of `tooLong`, when it has more bytes */
export async function readUpTo(stream: AsyncIterable<Uint8Array>, maxBytes: number, tooLong: () => Error) {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of stream) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > maxBytes) throw tooLong()
  }
  return Buffer.concat(chunks)
}
