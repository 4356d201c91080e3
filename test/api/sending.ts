import type { Answer, Asker } from '../support/asker.ts'

/** POST and PATCH of JSON; a text is sent as it is. */
export function sender() {
  const send =
    (method: 'POST' | 'PATCH') =>
    (who: Asker, url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
      who.send({
        method,
        url,
        headers: { 'content-type': 'application/json', ...headers },
        payload: typeof body === 'string' ? body : JSON.stringify(body),
      })
  return { post: send('POST'), patch: send('PATCH') }
}
