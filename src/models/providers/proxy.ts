import { z } from 'zod'
import { line, oneOf, text, uuids, validity } from '../fields.ts'
import { regularExpressionLines } from '../patterns.ts'
import { defineProvider } from '../provider.ts'
import { keyPair, serving } from '../signing.ts'
import { blankOr, cookieDomain } from '../syntax.ts'
import { httpUrl } from '../urls.ts'

const basicAuthAttributes = ['basic_auth_password_attribute', 'basic_auth_user_attribute'] as const

export default defineProvider({
  kind: 'proxy',
  verboseName: 'Proxy Provider',
  // It requests its claims as an OAuth2 client does.
  fits: { property_mappings: ['oauth2', 'proxy'] },
  settings: z.object({
    internal_host: text(blankOr(httpUrl)).default(''),
    external_host: text(httpUrl),
    internal_host_ssl_validation: z.boolean().default(true),
    certificate: keyPair(serving()),
    skip_path_regex: text(regularExpressionLines, 10_000).default(''),
    basic_auth_enabled: z.boolean().default(false),
    basic_auth_password_attribute: line(255).default(''),
    basic_auth_user_attribute: line(255).default(''),
    mode: oneOf(['proxy', 'forward_single', 'forward_domain'], 'ProxyMode').default('proxy'),
    intercept_header_auth: z.boolean().default(true),
    cookie_domain: text(blankOr(cookieDomain), 255).default(''),
    access_token_validity: validity('hours=1'),
    refresh_token_validity: validity('days=30'),
    jwks_sources: uuids().default([]),
  }),
  rules(values, report) {
    if (values.mode === 'proxy' && values.internal_host === '')
      report(['internal_host'], 'invalid_combination', 'May not be empty when mode is proxy.')
    if (values.mode === 'forward_domain' && values.cookie_domain === '')
      report(['cookie_domain'], 'invalid_combination', 'May not be empty when mode is forward_domain.')
    if (values.basic_auth_enabled !== true) return
    for (const field of basicAuthAttributes) {
      const attribute = values[field]
      if (typeof attribute === 'string' && attribute.trim() === '')
        report([field], 'invalid_combination', 'May not be empty when basic_auth_enabled is true.')
    }
  },
  launchUrl: ({ external_host }) => (typeof external_host === 'string' ? external_host : null),
})
