import { z } from 'zod'
import { randomText } from '../../ids.ts'
import type { Values } from '../define.ts'
import { filledLine, generated, line, oneOf, overlapping, redirectUris, secret, uuids, validity } from '../fields.ts'
import { defineProvider } from '../provider.ts'
import { encrypting, keyPair, signing } from '../signing.ts'
import { originOf } from '../urls.ts'

const subModes = ['hashed_user_id', 'user_id', 'user_uuid', 'user_username', 'user_email', 'user_upn'] as const

/** The schema of stored URIs, without the rules of today: an earlier version may have stored other patterns. */
const storedUris = z.array(z.object({ matching_mode: z.string(), url: z.string() }))

/** The scheme and host of the first redirect URI: the application is there. */
function launchUrl(values: Values): string | null {
  const [first] = storedUris.safeParse(values.redirect_uris).data ?? []
  if (first === undefined) return null
  return first.matching_mode === 'strict' ? originOf(first.url) : originOfPattern(first.url)
}

/** The origin at the start of a pattern, when it is literal. A dot in it counts as a dot, escaped or not. */
function originOfPattern(pattern: string): string | null {
  const plain = pattern.replace(/^\^/, '').replace(/\\([./-])/g, '$1')
  const [, origin] = /^([a-z][a-z\d+.-]*:\/\/[\w.:-]+)(?:\/|\$?$)/i.exec(plain) ?? []
  return origin === undefined ? null : originOf(origin)
}

export default defineProvider({
  kind: 'oauth2',
  verboseName: 'OAuth2/OpenID Provider',
  usual: true,
  hasScopes: true,
  elsewhere: {
    title: 'OAuth',
    shipped: ['openid', 'email', 'profile', 'offline_access', 'address', 'phone', 'groups'].map(
      (each) => `scope-${each}`,
    ),
  },
  settings: z.object({
    client_type: oneOf(['confidential', 'public'], 'ClientType').default('confidential'),
    client_id: generated(filledLine(255), () => randomText(40)),
    client_secret: overlapping(secret(generated(line(255), () => randomText(128)))),
    access_code_validity: validity('minutes=1'),
    access_token_validity: validity('hours=1'),
    refresh_token_validity: validity('days=30'),
    include_claims_in_id_token: z.boolean().default(true),
    signing_key: keyPair(signing(() => ['rsa', 'ec', 'ed25519'])),
    encryption_key: keyPair(encrypting(() => ['rsa', 'ec'])),
    redirect_uris: redirectUris().default([]),
    sub_mode: oneOf(subModes, 'SubMode').default('hashed_user_id'),
    issuer_mode: oneOf(['global', 'per_provider'], 'IssuerMode').default('per_provider'),
    jwks_sources: uuids().default([]),
  }),
  columns: { client_id: 'oauth2_client_id' },
  unique: ['client_id'],
  rules({ client_type, client_secret }, report) {
    // Any party could authenticate as a client with an empty secret.
    if (client_type === 'confidential' && client_secret === '')
      report(['client_secret'], 'invalid_combination', 'May not be empty when client_type is confidential.')
  },
  launchUrl,
})
