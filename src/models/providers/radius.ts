import { z } from 'zod'
import { randomText } from '../../ids.ts'
import { filledLine, generated, secret, text, unordered } from '../fields.ts'
import { defineProvider } from '../provider.ts'
import { cidrList } from '../syntax.ts'

const everywhere = '0.0.0.0/0, ::/0'

export default defineProvider({
  kind: 'radius',
  verboseName: 'Radius Provider',
  // It binds with a flow that authenticates; older files have one that authorizes.
  fits: { authorization_flow: ['authentication', 'authorization'] },
  settings: z.object({
    client_networks: unordered(text(cidrList, 20_000)).default(everywhere),
    shared_secret: secret(generated(filledLine(255), () => randomText(128))),
    mfa_support: z.boolean().default(true),
  }),
})
