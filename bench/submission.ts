import { readFileSync } from 'node:fs'

const example = readFileSync(new URL('../examples/oauth2.json', import.meta.url), 'utf8')

/** The shipped OAuth2 submission under another name, which creates an application and a provider. */
export function submission(name: string): string {
  const { app, provider, ...rest } = JSON.parse(example)
  return JSON.stringify({
    ...rest,
    app: { ...app, name: `Application ${name}`, slug: name },
    provider: { ...provider, name, client_id: name },
  })
}
