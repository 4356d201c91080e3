import { z } from 'zod'
import type { Values } from '../define.ts'
import { filledLine, line, oneOf, reference, text, validity } from '../fields.ts'
import { defineProvider } from '../provider.ts'
import { encrypting, keyPair, signing } from '../signing.ts'
import { httpUrl } from '../urls.ts'

// https://www.w3.org/TR/xmldsig-core1/#sec-AlgID, and RFC 6931 for xmldsig-more.
const xmldsig = 'http://www.w3.org/2000/09/xmldsig#'
const xmldsigMore = 'http://www.w3.org/2001/04/xmldsig-more#'
const xmlenc = 'http://www.w3.org/2001/04/xmlenc#'

const digests = [`${xmldsig}sha1`, `${xmlenc}sha256`, `${xmldsigMore}sha384`, `${xmlenc}sha512`] as const

const signatures = [
  `${xmldsig}rsa-sha1`,
  `${xmldsigMore}rsa-sha256`,
  `${xmldsigMore}rsa-sha384`,
  `${xmldsigMore}rsa-sha512`,
  `${xmldsigMore}ecdsa-sha1`,
  `${xmldsigMore}ecdsa-sha256`,
  `${xmldsigMore}ecdsa-sha384`,
  `${xmldsigMore}ecdsa-sha512`,
  `${xmldsig}dsa-sha1`,
] as const

/** `rsa` of `...#rsa-sha256`. */
const signsWith = (algorithm: string): string => /#(ec|rsa|dsa)/.exec(algorithm)?.[1] ?? ''
const keysFor = ({ signature_algorithm }: Values) => [signsWith(String(signature_algorithm))]

function algorithmsFor(type: string): string {
  const fitting = signatures.filter((each) => signsWith(each) === type)
  return fitting.length === 0 ? '' : ` with this signature_algorithm; this key goes with ${fitting.join(', ')}`
}

export default defineProvider({
  kind: 'saml',
  verboseName: 'SAML Provider',
  elsewhere: { title: 'SAML', shipped: ['upn', 'name', 'email', 'username', 'uid', 'groups'] },
  settings: z.object({
    acs_url: text(httpUrl, 200),
    audience: line().default(''),
    issuer: filledLine().default('service'),
    assertion_valid_not_before: validity('minutes=-5'),
    assertion_valid_not_on_or_after: validity('minutes=5'),
    session_valid_not_on_or_after: validity('minutes=86400'),
    name_id_mapping: reference('propertymapping').nullable().default(null),
    digest_algorithm: oneOf(digests, 'DigestAlgorithm').default(`${xmlenc}sha256`),
    signature_algorithm: oneOf(signatures, 'SignatureAlgorithm').default(`${xmldsigMore}rsa-sha256`),
    signing_kp: keyPair(signing(keysFor, ['signature_algorithm'], algorithmsFor)),
    verification_kp: keyPair(),
    // XML encryption transports its keys by RSA.
    encryption_kp: keyPair(encrypting(() => ['rsa'])),
    sign_assertion: z.boolean().default(true),
    sign_response: z.boolean().default(false),
    sp_binding: oneOf(['redirect', 'post'], 'SpBinding').default('redirect'),
    default_relay_state: line().default(''),
  }),
  rules({ signing_kp, sign_assertion, sign_response }, report) {
    const isSigned = sign_assertion !== false || sign_response !== false
    if (signing_kp === undefined || signing_kp === null || isSigned) return
    for (const field of ['sign_assertion', 'sign_response']) {
      report([field], 'invalid_combination', 'With a signing_kp, sign_assertion or sign_response must be true.')
    }
  },
})
